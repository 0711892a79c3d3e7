//! The two benchmarks as data: tables, keys, the ways in which the cluster spreads them, queries. The SQL itself is in
//! `crates/bench/analytics/`.

/// A table; keys are made after the rows.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    /// What its rows are known by; empty if there is nothing.
    pub key: &'static [&'static str],
    /// Columns of each other index, comma-separated.
    pub indexes: &'static [&'static str],
}

/// A way to spread the tables. Those that it does not name stay on the coordinator.
#[derive(Debug)]
pub struct Layout {
    pub name: &'static str,
    /// Tables and their distribution columns.
    pub distributed: &'static [(&'static str, &'static str)],
    pub references: &'static [&'static str],
}

/// A query as its file has it.
#[derive(Debug)]
pub struct Query {
    pub name: &'static str,
    pub text: &'static str,
}

#[derive(Debug)]
pub struct Benchmark {
    /// Also the name of its schema.
    pub name: &'static str,
    pub title: &'static str,
    pub schema: &'static str,
    pub data: &'static str,
    pub tables: &'static [Table],
    pub layouts: &'static [Layout],
    pub queries: &'static [Query],
}

macro_rules! queries {
    ($directory:literal, $($name:literal)*) => {
        &[$(Query {
            name: $name,
            text: include_str!(concat!("../../analytics/", $directory, "/q", $name, ".sql")),
        }),*]
    };
}

pub const BENCHMARKS: [Benchmark; 2] = [
    Benchmark {
        name: "tpch",
        title: "The shapes of TPC-H",
        schema: include_str!("../../analytics/tpch/schema.sql"),
        data: include_str!("../../analytics/tpch/data.sql"),
        tables: &[
            Table { name: "region", key: &["r_regionkey"], indexes: &[] },
            Table { name: "nation", key: &["n_nationkey"], indexes: &[] },
            Table { name: "supplier", key: &["s_suppkey"], indexes: &[] },
            Table { name: "customer", key: &["c_custkey"], indexes: &[] },
            Table { name: "part", key: &["p_partkey"], indexes: &[] },
            Table { name: "partsupp", key: &["ps_partkey", "ps_suppkey"], indexes: &["ps_suppkey"] },
            Table { name: "orders", key: &["o_orderkey"], indexes: &["o_custkey"] },
            Table { name: "lineitem", key: &["l_orderkey", "l_linenumber"], indexes: &["l_partkey, l_suppkey"] },
        ],
        layouts: &[
            Layout {
                name: "colocated",
                distributed: &[("lineitem", "l_orderkey"), ("orders", "o_orderkey"), ("partsupp", "ps_partkey")],
                references: &["region", "nation", "supplier", "customer", "part"],
            },
            Layout {
                name: "apart",
                distributed: &[
                    ("lineitem", "l_suppkey"),
                    ("orders", "o_custkey"),
                    ("partsupp", "ps_partkey"),
                    ("part", "p_size"),
                    ("customer", "c_nationkey"),
                    ("supplier", "s_nationkey"),
                ],
                references: &["region", "nation"],
            },
        ],
        queries: queries!("tpch", "01" "02" "03" "04" "05" "06" "07" "08" "09" "10" "11" "12" "13" "14" "15" "16" "17"
            "18" "19" "20" "21" "22"),
    },
    Benchmark {
        name: "ch",
        title: "The shapes of CH-benCHmark",
        schema: include_str!("../../analytics/ch/schema.sql"),
        data: include_str!("../../analytics/ch/data.sql"),
        tables: &[
            Table { name: "region", key: &["r_regionkey"], indexes: &[] },
            Table { name: "nation", key: &["n_nationkey"], indexes: &[] },
            Table { name: "supplier", key: &["su_suppkey"], indexes: &[] },
            Table { name: "item", key: &["i_id"], indexes: &[] },
            Table { name: "warehouse", key: &["w_id"], indexes: &[] },
            Table { name: "district", key: &["d_w_id", "d_id"], indexes: &[] },
            Table { name: "customer", key: &["c_w_id", "c_d_id", "c_id"], indexes: &["c_w_id, c_d_id, c_last"] },
            Table { name: "history", key: &[], indexes: &[] },
            Table { name: "orders", key: &["o_w_id", "o_d_id", "o_id"], indexes: &["o_w_id, o_d_id, o_c_id"] },
            Table { name: "neworder", key: &["no_w_id", "no_d_id", "no_o_id"], indexes: &[] },
            Table { name: "orderline", key: &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"], indexes: &["ol_i_id"] },
            Table { name: "stock", key: &["s_w_id", "s_i_id"], indexes: &["s_i_id"] },
        ],
        layouts: &[
            Layout {
                name: "colocated",
                distributed: &[
                    ("warehouse", "w_id"),
                    ("district", "d_w_id"),
                    ("customer", "c_w_id"),
                    ("history", "h_w_id"),
                    ("orders", "o_w_id"),
                    ("neworder", "no_w_id"),
                    ("orderline", "ol_w_id"),
                    ("stock", "s_w_id"),
                ],
                references: &["region", "nation", "supplier", "item"],
            },
            Layout {
                name: "apart",
                distributed: &[
                    ("supplier", "su_suppkey"),
                    ("item", "i_im_id"),
                    ("warehouse", "w_id"),
                    ("district", "d_id"),
                    ("customer", "c_id"),
                    ("history", "h_c_id"),
                    ("orders", "o_id"),
                    ("neworder", "no_d_id"),
                    ("orderline", "ol_i_id"),
                    ("stock", "s_w_id"),
                ],
                references: &["region", "nation"],
            },
        ],
        queries: queries!("ch", "01" "02" "03" "04" "05" "06" "07" "08" "09" "10" "11" "12" "13" "14" "15" "16" "17"
            "18" "19" "20" "21" "22"),
    },
];

impl Query {
    /// The columns of the result by which it is sorted, from 0: the line of the file that says so, in the words of
    /// people, who count from 1.
    pub fn order(&self) -> Vec<usize> {
        let said = self.text.lines().find_map(|line| line.strip_prefix("-- ordered by columns:"));
        let numbers = said.into_iter().flat_map(|list| list.split(','));
        numbers.filter_map(|number| number.trim().parse::<usize>().ok()?.checked_sub(1)).collect()
    }

    /// Without the lines that explain it.
    pub fn statement(&self) -> String {
        let lines: Vec<&str> = self.text.lines().filter(|line| !line.starts_with("--")).collect();
        lines.join("\n")
    }
}

impl Benchmark {
    /// Keys and indexes, the same on both servers: a primary key where the layout permits one, else an index.
    pub fn keys(&self, layout: &Layout) -> Vec<String> {
        let mut statements = Vec::new();
        for table in self.tables {
            let column = layout.distributed.iter().find(|(name, _)| *name == table.name).map(|(_, column)| *column);
            let is_unique_everywhere = column.is_none_or(|column| table.key.contains(&column));
            let columns = table.key.join(", ");
            let target = format!("{}.{}", self.name, table.name);
            match (columns.is_empty(), is_unique_everywhere) {
                (true, _) => {}
                (false, true) => statements.push(format!("ALTER TABLE {target} ADD PRIMARY KEY ({columns})")),
                (false, false) => statements.push(format!("CREATE INDEX ON {target} ({columns})")),
            }
            statements.extend(table.indexes.iter().map(|columns| format!("CREATE INDEX ON {target} ({columns})")));
        }
        statements
    }

    /// What makes the cluster's tables of plain ones.
    pub fn spread(&self, layout: &Layout) -> Vec<String> {
        let references =
            layout.references.iter().map(|table| format!("SELECT create_reference_table('{}.{table}')", self.name));
        let distributed = layout
            .distributed
            .iter()
            .map(|(table, column)| format!("SELECT create_distributed_table('{}.{table}', '{column}')", self.name));
        references.chain(distributed).collect()
    }
}

impl Layout {
    /// For the report.
    pub fn line(&self) -> String {
        let columns: Vec<String> =
            self.distributed.iter().map(|(table, column)| format!("{table} by {column}")).collect();
        format!("{}; on every node: {}", columns.join(", "), self.references.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_is_there_and_says_how_it_is_sorted() {
        for benchmark in &BENCHMARKS {
            assert_eq!(benchmark.queries.len(), 22, "{}", benchmark.name);
            for query in benchmark.queries {
                let statement = query.statement();
                let name = format!("{} {}", benchmark.name, query.name);
                assert!(query.text.starts_with("-- "), "{name} does not say what it asks");
                assert!(!statement.contains("--") && !statement.contains(';'), "{name}: {statement}");
                let is_sorted = statement.lines().any(|line| line.starts_with("ORDER BY"));
                assert_eq!(is_sorted, !query.order().is_empty(), "{name}: the comment and ORDER BY differ");
            }
        }
    }

    #[test]
    fn layouts_name_each_table_once_and_no_other() {
        for benchmark in &BENCHMARKS {
            let mut tables: Vec<&str> = benchmark.tables.iter().map(|table| table.name).collect();
            tables.sort_unstable();
            for layout in benchmark.layouts {
                let distributed = layout.distributed.iter().map(|(name, _)| *name);
                let mut spread: Vec<&str> = distributed.chain(layout.references.iter().copied()).collect();
                spread.sort_unstable();
                assert_eq!(spread, tables, "{} {}", benchmark.name, layout.name);
            }
        }
    }

    #[test]
    fn a_key_without_the_distribution_column_is_an_index() {
        let tpch = &BENCHMARKS[0];
        let keys = |layout: usize| tpch.keys(&tpch.layouts[layout]);
        assert!(keys(0).contains(&"ALTER TABLE tpch.orders ADD PRIMARY KEY (o_orderkey)".to_owned()));
        assert!(keys(1).contains(&"CREATE INDEX ON tpch.orders (o_orderkey)".to_owned()));
        assert!(keys(1).contains(&"ALTER TABLE tpch.nation ADD PRIMARY KEY (n_nationkey)".to_owned()));
    }
}
