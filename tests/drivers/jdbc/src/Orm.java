package drivers;

import static drivers.Suite.connect;
import static drivers.Suite.distribute;
import static drivers.Suite.execute;
import static drivers.Suite.ok;
import static drivers.Suite.rows;
import static drivers.Suite.same;
import static drivers.Suite.test;
import static drivers.Suite.update;
import static drivers.Suite.value;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.LockModeType;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.sql.Connection;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import org.hibernate.ScrollMode;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.StaleStateException;
import org.hibernate.StatelessSession;
import org.hibernate.annotations.DynamicUpdate;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.cfg.Configuration;
import org.hibernate.dialect.lock.OptimisticEntityLockException;
import org.hibernate.exception.ConstraintViolationException;
import org.hibernate.type.SqlTypes;

/** Hibernate. */
final class Orm {
    private static final String[] KINDS = {"local", "distributed", "reference"};
    private static final Logger LOGGER = Logger.getLogger("org.hibernate");

    enum Genre { NOVEL, POEM }

    @Entity(name = "Author")
    @Table(name = "jo_author")
    static class Author {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;
        @Column(nullable = false, length = 60)
        String name;
        @Version
        int version;
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true)
        @OrderBy("id")
        List<Book> books = new ArrayList<>();

        protected Author() {}

        Author(String name) {
            this.name = name;
        }

        public String name() {
            return name;
        }

        public Author with(Book book) {
            book.author = this;
            books.add(book);
            return this;
        }
    }

    @Entity(name = "Book")
    @Table(name = "jo_book")
    static class Book {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "jo_book_seq")
        @SequenceGenerator(name = "jo_book_seq", sequenceName = "jo_book_seq", allocationSize = 10)
        Long id;
        String title;
        @Column(precision = 10, scale = 2)
        BigDecimal price;
        @Enumerated(EnumType.STRING)
        @JdbcTypeCode(SqlTypes.VARCHAR)
        Genre genre;
        @ManyToOne(fetch = FetchType.LAZY)
        @JoinColumn(name = "author_id")
        Author author;

        protected Book() {}

        Book(String title, String price, Genre genre) {
            this.title = title;
            this.price = new BigDecimal(price);
            this.genre = genre;
        }
    }

    @Entity(name = "Item")
    @Table(name = "jo_item")
    @DynamicUpdate
    static class Item {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "jo_item_seq")
        @SequenceGenerator(name = "jo_item_seq", sequenceName = "jo_item_seq", allocationSize = 50)
        Long id;
        String name;
        int amount;
        UUID code;
        LocalDate day;
        OffsetDateTime made;
        byte[] data;
        String[] tags;
        Integer[] numbers;
        @Version
        long version;

        protected Item() {}

        Item(String name, int amount) {
            this.name = name;
            this.amount = amount;
            code = new UUID(1, amount);
            day = LocalDate.of(2024, 1, 1).plusDays(amount);
            made = OffsetDateTime.of(2024, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC).plusHours(amount);
            data = new byte[] {0, (byte) amount};
            tags = new String[] {"a", name};
            numbers = new Integer[] {amount, null};
        }
    }

    private interface Use {
        void run(SessionFactory factory) throws Exception;
    }

    static void add() {
        LOGGER.setLevel(Level.OFF);
        entities();
        queries();
        locks();
        batches();
        schema();
    }

    private static Configuration configuration(String... settings) {
        Configuration c = new Configuration();
        c.setProperty("hibernate.connection.url", Suite.url("reWriteBatchedInserts=true"));
        c.setProperty("hibernate.connection.pool_size", "4");
        c.setProperty("hibernate.jdbc.batch_size", "20");
        c.setProperty("hibernate.order_inserts", "true");
        for (int i = 0; i < settings.length; i += 2) c.setProperty(settings[i], settings[i + 1]);
        for (Class<?> one : new Class<?>[] {Author.class, Book.class, Item.class}) c.addAnnotatedClass(one);
        return c;
    }

    private static void drop(Connection c) throws Exception {
        execute(c, "drop table if exists jo_book, jo_author, jo_item cascade",
            "drop sequence if exists jo_book_seq, jo_item_seq");
    }

    /** The tables by Hibernate, spread before there is anything in them. */
    private static void made(String name, Use use, String... settings) {
        for (String kind : KINDS) {
            test("orm: " + name + " [" + kind + "]", () -> {
                try (Connection c = connect("")) {
                    drop(c);
                    configuration("hibernate.hbm2ddl.auto", "create-only").buildSessionFactory().close();
                    if (kind.equals("distributed")) {
                        execute(c, "alter table jo_book drop constraint " + value(c,
                            "select conname from pg_constraint "
                            + "where conrelid = 'jo_book'::regclass and contype = 'f'"));
                    }
                    if (!kind.equals("local")) {
                        for (String table : new String[] {"jo_author", "jo_book", "jo_item"}) {
                            distribute(c, table, kind.equals("distributed") ? "id" : null);
                        }
                    }
                    try (SessionFactory factory = configuration(settings).buildSessionFactory()) {
                        use.run(factory);
                    }
                    drop(c);
                }
            });
        }
    }

    private static void filled(SessionFactory factory) {
        factory.inTransaction(s -> {
            for (int i = 1; i <= 5; i++) {
                Author author = new Author("author " + i);
                for (int j = 1; j <= i; j++) {
                    author.with(new Book("book " + i + "." + j, i + "." + j + "0", j % 2 == 0 ? Genre.POEM
                        : Genre.NOVEL));
                }
                s.persist(author);
            }
        });
    }

    private static Throwable failed(SessionFactory factory, Consumer<Session> body) {
        try {
            factory.inTransaction(body);
        } catch (RuntimeException e) {
            return e;
        }
        throw new AssertionError("no error");
    }

    private static void stale(Throwable e) {
        for (Throwable one = e; one != null; one = one.getCause()) {
            if (one instanceof StaleStateException || one instanceof OptimisticEntityLockException) return;
        }
        throw new AssertionError(e);
    }

    private static void entities() {
        made("entities", factory -> {
            filled(factory);
            factory.inTransaction(s -> {
                Author author = s.find(Author.class, 3L);
                same(author.name + " " + author.version, "author 3 0");
                same(author.books.stream().map(b -> b.title).collect(Collectors.joining(",")),
                    "book 3.1,book 3.2,book 3.3");
                author.name = "changed";
                author.books.remove(1);
                author.with(new Book("added", "7.77", null));
            });
            factory.inTransaction(s -> {
                Author author = s.find(Author.class, 3L);
                same(author.name + " " + author.version, "changed 1");
                same(author.books.stream().map(b -> b.title + b.price).toList(),
                    List.of("book 3.13.10", "book 3.33.30", "added7.77"));
                same(author.books.get(2).genre, null);
                s.remove(author);
            });
            factory.inTransaction(s -> {
                same(s.find(Author.class, 3L), null);
                same(s.createQuery("select count(b) from Book b", Long.class).getSingleResult(), 12L);
                Book book = s.createQuery("from Book b where b.title = 'book 5.2'", Book.class).getSingleResult();
                same(book.author.name() + book.genre, "author 5POEM");
            });
            factory.inTransaction(s -> {
                Author detached = new Author("merged");
                detached.id = 1L;
                detached.books = new ArrayList<>();
                same(s.merge(detached).id, 1L);
            });
            factory.inTransaction(s -> {
                same(s.find(Author.class, 1L).name, "merged");
                same(s.find(Author.class, 1L).books.size(), 0);
            });
            try (Session s = factory.openSession()) {
                s.beginTransaction();
                Author author = new Author("rolled back");
                s.persist(author);
                same(author.id, 6L);
                s.getTransaction().rollback();
            }
            factory.inTransaction(s -> same(s.find(Author.class, 6L), null));
            Throwable e = failed(factory, s -> s.createNativeMutationQuery(
                "insert into jo_author (id, name, version) overriding system value values (1, 'x', "
                + "0)").executeUpdate());
            ok(e instanceof ConstraintViolationException c && c.getConstraintName().equals("jo_author_pkey"));
        });
        made("types", factory -> {
            Item made = new Item("é'\\", 5);
            factory.inTransaction(s -> s.persist(made));
            factory.inTransaction(s -> {
                Item item = s.find(Item.class, made.id);
                same(item.name + item.code + item.day, "é'\\00000000-0000-0001-0000-0000000000052024-01-06");
                same(item.made.toInstant(), made.made.toInstant());
                same(item.data, new byte[] {0, 5});
                same(item.tags, new String[] {"a", "é'\\"});
                same(item.numbers, new Integer[] {5, null});
                item.tags = null;
                item.numbers = new Integer[] {};
            });
            factory.inTransaction(s -> {
                Item item = s.find(Item.class, made.id);
                same(item.tags, null);
                same(item.numbers.length + " " + item.version, "0 1");
            });
        });
    }

    private static void queries() {
        made("queries", factory -> {
            filled(factory);
            factory.inTransaction(s -> {
                same(s.createQuery("select a.name, count(b), sum(b.price) from Author a join a.books b where b.price "
                    + "> :p "
                        + "group by a.name having count(b) > 1 order by a.name", Object[].class)
                    .setParameter("p", new BigDecimal("3.15")).list().stream().map(Arrays::toString).toList(),
                    List.of("[author 3, 2, 6.50]", "[author 4, 4, 17.00]", "[author 5, 5, 26.50]"));
                List<Author> all = s.createQuery("select distinct a from Author a left join fetch a.books order by "
                    + "a.id",
                    Author.class).list();
                same(all.stream().mapToInt(a -> a.books.size()).sum(), 15);
                same(s.createQuery("from Book b where b.author.name in :names and b.genre = :g order by b.title",
                    Book.class)
                    .setParameter("names", List.of("author 2", "author 4")).setParameter("g", Genre.POEM).list()
                    .stream()
                    .map(b -> b.title).toList(), List.of("book 2.2", "book 4.2", "book 4.4"));
                same(s.createQuery("select upper(b.title) || '!' from Book b where b.price = (select max(c.price) "
                    + "from Book c)",
                    String.class).getSingleResult(), "BOOK 5.5!");
                same(s.createQuery("select a.id from Author a where exists (select 1 from Book b where b.author = a "
                    + "and b.price < 2) order by a.id", Long.class).list(), List.of(1L));
                same(s.createQuery("select b.title, rank() over (partition by b.author.id order by b.price desc) "
                    + "from Book b "
                    + "where b.author.id = 2 order by b.title", Object[].class).list().stream().map(Arrays::toString)
                    .toList(),
                    List.of("[book 2.1, 2]", "[book 2.2, 1]"));
                var builder = s.getCriteriaBuilder();
                var query = builder.createQuery(Book.class);
                var book = query.from(Book.class);
                query.where(builder.like(book.get("title"), "book 4%")).orderBy(builder.desc(book.get("price")));
                same(s.createQuery(query).list().stream().map(b -> b.title).toList(),
                    List.of("book 4.4", "book 4.3", "book 4.2", "book 4.1"));
            });
            factory.inTransaction(s -> {
                same(s.createNativeQuery("select * from jo_book where title like ?1 order by title", Book.class)
                    .setParameter(1, "book 5%").list().size(), 5);
                same(Arrays.toString((Object[]) s.createNativeQuery("select count(*), min(price) from jo_book where "
                    + "genre = :g",
                    Object[].class).setParameter("g", "POEM").getSingleResult()), "[6, 2.20]");
                same(s.createMutationQuery("update Book b set b.price = b.price + 1 where b.genre = :g")
                    .setParameter("g", Genre.POEM).executeUpdate(), 6);
                same(s.createMutationQuery("delete from Book b where b.price > 6").executeUpdate(), 2);
                same(s.createMutationQuery("update versioned Author a set a.name = a.name || '?' where a.id < 3")
                    .executeUpdate(), 2);
                same(s.createQuery("select sum(a.version) from Author a", Long.class).getSingleResult(), 2L);
            });
            factory.inTransaction(s -> {
                List<String> pages = new ArrayList<>();
                for (int i = 0; i < 16; i += 4) {
                    pages.addAll(s.createQuery("select b.title from Book b order by b.title",
                        String.class).setFirstResult(i)
                        .setMaxResults(4).list());
                }
                same(pages.size() + " " + pages.get(0) + " " + pages.get(12), "13 book 1.1 book 5.5");
                int n = 0;
                try (var scrolled = s.createQuery("from Book b order by b.id", Book.class).setFetchSize(3)
                        .scroll(ScrollMode.FORWARD_ONLY)) {
                    while (scrolled.next()) n += scrolled.get().title.length();
                }
                same(n, 13 * 8);
                try (var streamed = s.createQuery("from Book b", Book.class).setFetchSize(5).getResultStream()) {
                    same(streamed.count(), 13L);
                }
            });
        });
    }

    private static void locks() {
        made("optimistic locks", factory -> {
            factory.inTransaction(s -> s.persist(new Author("one")));
            Throwable e = failed(factory, s -> {
                Author author = s.find(Author.class, 1L);
                factory.inTransaction(other -> other.find(Author.class, 1L).name = "other");
                author.name = "mine";
            });
            stale(e);
            e = failed(factory, s -> {
                Author author = s.find(Author.class, 1L);
                factory.inTransaction(other -> other.remove(other.find(Author.class, 1L)));
                author.name = "mine";
            });
            stale(e);
            factory.inTransaction(s -> s.persist(new Author("two")));
            factory.inTransaction(s -> s.find(Author.class, 2L, LockModeType.OPTIMISTIC_FORCE_INCREMENT));
            factory.inTransaction(s -> same(s.find(Author.class, 2L, LockModeType.OPTIMISTIC).version, 1));
            e = failed(factory, s -> {
                s.find(Author.class, 2L, LockModeType.OPTIMISTIC);
                factory.inTransaction(other -> other.find(Author.class, 2L).name = "other");
            });
            stale(e);
        });
        made("pessimistic locks", factory -> {
            factory.inTransaction(s -> {
                for (int i = 0; i < 4; i++) s.persist(new Author("a" + i));
            });
            factory.inTransaction(s -> {
                Author author = s.find(Author.class, 1L, LockModeType.PESSIMISTIC_WRITE);
                Throwable e = failed(factory, other -> other.find(Author.class, 1L, LockModeType.PESSIMISTIC_WRITE,
                    Map.of("jakarta.persistence.lock.timeout", 0)));
                ok(e instanceof jakarta.persistence.LockTimeoutException
                    || e instanceof jakarta.persistence.PessimisticLockException);
                factory.inTransaction(other -> same(other.createQuery("from Author a order by a.id", Author.class)
                    .setLockMode(LockModeType.PESSIMISTIC_WRITE).setHint("jakarta.persistence.lock.timeout", -2)
                    .list().stream().map(a -> a.id).toList(), List.of(2L, 3L, 4L)));
                author.name = "locked";
            });
            factory.inTransaction(s -> {
                Author author = s.find(Author.class, 1L, LockModeType.PESSIMISTIC_READ);
                same(author.name, "locked");
                factory.inTransaction(other -> same(other.find(Author.class, 1L,
                    LockModeType.PESSIMISTIC_READ).version, 1));
                s.refresh(author, LockModeType.PESSIMISTIC_FORCE_INCREMENT);
            });
            factory.inTransaction(s -> same(s.find(Author.class, 1L).version, 2));
        });
        made("changes by many threads", factory -> {
            Item item = new Item("counter", 0);
            factory.inTransaction(s -> s.persist(item));
            List<Thread> all = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                Thread thread = new Thread(() -> {
                    for (int j = 0; j < 10; ) {
                        try {
                            factory.inTransaction(s -> s.find(Item.class, item.id).amount++);
                            j++;
                        } catch (RuntimeException e) {
                            stale(e);
                        }
                    }
                });
                thread.start();
                all.add(thread);
            }
            for (Thread thread : all) thread.join();
            factory.inTransaction(s -> same(s.find(Item.class, item.id).amount + " " + s.find(Item.class,
                item.id).version,
                "40 40"));
        });
    }

    private static void batches() {
        for (String versioned : new String[] {"true", "false"}) {
            made("batches, batch_versioned_data=" + versioned, factory -> {
                factory.inTransaction(s -> {
                    for (int i = 0; i < 230; i++) {
                        s.persist(new Item("i" + i, i));
                        if (i % 50 == 49) {
                            s.flush();
                            s.clear();
                        }
                    }
                });
                factory.inTransaction(s -> {
                    same(Arrays.toString(s.createQuery("select count(i), min(i.id), max(i.id), sum(i.amount) from "
                        + "Item i",
                        Object[].class).getSingleResult()), "[230, 1, 230, 26335]");
                    for (Item item : s.createQuery("from Item i where i.amount < 70",
                        Item.class).list()) item.amount += 1000;
                });
                factory.inTransaction(s -> {
                    same(s.createQuery("select sum(i.version) from Item i", Long.class).getSingleResult(), 70L);
                    for (Item item : s.createQuery("from Item i where i.amount >= 1000",
                        Item.class).list()) s.remove(item);
                });
                factory.inTransaction(s -> same(s.createQuery("select count(i) from Item i",
                    Long.class).getSingleResult(),
                    160L));
                Throwable e = failed(factory, s -> {
                    List<Item> items = s.createQuery("from Item i order by i.id", Item.class).setMaxResults(30).list();
                    factory.inTransaction(other -> other.find(Item.class, items.get(12).id).amount = -1);
                    for (Item item : items) item.amount = -2;
                });
                stale(e);
                factory.inTransaction(s -> same(s.createQuery("select count(i) from Item i where i.amount < 0",
                    Long.class)
                    .getSingleResult(), 1L));
            }, "hibernate.jdbc.batch_versioned_data", versioned, "hibernate.order_updates", "true");
        }
        made("stateless", factory -> {
            try (StatelessSession s = factory.openStatelessSession()) {
                s.beginTransaction();
                s.setJdbcBatchSize(1);
                Author author = new Author("stateless");
                s.insert(author);
                author.name = "updated";
                s.update(author);
                same(s.get(Author.class, author.id).name, "updated");
                s.delete(author);
                same(s.get(Author.class, author.id), null);
                s.getTransaction().commit();
            }
        });
    }

    private static void schema() {
        test("orm: create-drop", () -> {
            try (Connection c = connect("")) {
                drop(c);
                try (SessionFactory factory = configuration("hibernate.hbm2ddl.auto",
                    "create-drop").buildSessionFactory()) {
                    same(rows(c, "select table_name, column_name, data_type, is_nullable from "
                        + "information_schema.columns "
                        + "where table_name like 'jo\\_%' and table_name <> 'jo_item' order by 1, 2"),
                        "jo_author,id,bigint,NO|jo_author,name,character varying,NO|jo_author,version,integer,NO|"
                        + "jo_book,author_id,bigint,YES|jo_book,genre,character varying,YES|jo_book,id,bigint,NO|"
                        + "jo_book,price,numeric,YES|jo_book,title,character varying,YES");
                    filled(factory);
                }
                same(value(c, "select count(*) from pg_class where relname like 'jo\\_%'"), "0");
            }
        });
        made("validate", factory -> {
            configuration("hibernate.hbm2ddl.auto", "validate").buildSessionFactory().close();
            try (Connection c = connect("")) {
                execute(c, "alter table jo_item drop column amount");
                String told = "nothing";
                try {
                    configuration("hibernate.hbm2ddl.auto", "validate").buildSessionFactory().close();
                } catch (RuntimeException e) {
                    told = e.getMessage();
                }
                same(told, "Schema-validation: missing column [amount] in table [jo_item]");
                configuration("hibernate.hbm2ddl.auto", "update").buildSessionFactory().close();
                configuration("hibernate.hbm2ddl.auto", "validate").buildSessionFactory().close();
                same(update(c, "insert into jo_item (id, amount, version) values (1, 2, 3)"), 1);
            }
        });
    }

    private Orm() {}
}
