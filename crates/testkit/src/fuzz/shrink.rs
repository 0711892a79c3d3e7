//! Makes what differs small: words of a statement, and statements of a script, are left out as long as it differs.

/// Words, literals and signs of a statement.
pub fn tokens(sql: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let chars: Vec<char> = sql.chars().collect();
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let mut i = 0;
    while i < chars.len() {
        let start = i;
        let c = chars[i];
        if c.is_whitespace() {
            i += 1;
            continue;
        }
        if c == '\'' || c == '"' {
            i += 1;
            while i < chars.len() {
                if chars[i] == c {
                    i += 1;
                    if chars.get(i) != Some(&c) {
                        break;
                    }
                }
                i += 1;
            }
        } else if word(c) && !(c == '$' && chars.get(i + 1) == Some(&'$')) {
            while i < chars.len() && word(chars[i]) {
                i += 1;
            }
        } else if "+-*/<>=~!@#%^&|:$".contains(c) {
            while i < chars.len() && "+-*/<>=~!@#%^&|:$".contains(chars[i]) {
                i += 1;
            }
        } else {
            i += 1;
        }
        tokens.push(chars[start..i].iter().collect());
    }
    tokens
}

/// Tokens as a statement again.
pub fn text(tokens: &[String]) -> String {
    let mut out = String::new();
    for (i, token) in tokens.iter().enumerate() {
        let before = i.checked_sub(1).map(|j| &*tokens[j]);
        let close = matches!(&**token, "," | ")" | "]" | "::") || matches!(before, None | Some("(" | "[" | "::"));
        let call = (token == "(" || token == "[")
            && before.is_some_and(|b| b.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
        if !close && !call {
            out.push(' ');
        }
        out += token;
    }
    out
}

fn is_balanced(tokens: &[String]) -> bool {
    let mut depth = 0i32;
    for token in tokens {
        match &**token {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

/// The smallest list found that `fails` still holds for, where any part may be left out. It is asked at most `budget`
/// times.
pub fn list<T: Clone>(items: &[T], budget: &mut usize, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut items = items.to_vec();
    let mut size = items.len().div_ceil(2).max(1);
    while !items.is_empty() {
        let mut at = 0;
        let mut any = false;
        while at < items.len() {
            if *budget == 0 {
                return items;
            }
            let end = (at + size).min(items.len());
            let candidate: Vec<T> = items[..at].iter().chain(&items[end..]).cloned().collect();
            *budget -= 1;
            if fails(&candidate) {
                items = candidate;
                any = true;
            } else {
                at = end;
            }
        }
        if size > 1 {
            size = size.div_ceil(2);
        } else if !any {
            break;
        }
    }
    items
}

/// A smaller statement that `fails` still holds for.
pub fn statement(sql: &str, budget: &mut usize, mut fails: impl FnMut(&str) -> bool) -> String {
    let mut current = tokens(sql);
    loop {
        let before = current.len();
        // A group in parentheses as something that is always there, or without its parentheses.
        let mut at = 0;
        while at < current.len() {
            if current[at] == "(" {
                let mut depth = 0;
                let end = (at..current.len()).find(|&i| {
                    depth += i32::from(current[i] == "(") - i32::from(current[i] == ")");
                    depth == 0
                });
                if let Some(end) = end {
                    let whole = current[at + 1..end].to_vec();
                    for inner in [&[][..], &["NULL".to_owned()], &["1".to_owned()], &whole] {
                        if inner.len() >= end - at - 1 && inner.len() <= 1 || *budget == 0 {
                            continue;
                        }
                        let candidate = [&current[..at], inner, &current[end + 1..]].concat();
                        *budget -= 1;
                        if candidate.len() < current.len() && fails(&text(&candidate)) {
                            current = candidate;
                            break;
                        }
                    }
                }
            }
            at += 1;
        }
        let mut size = current.len().div_ceil(2).min(40);
        while size > 0 {
            let mut at = 0;
            while at < current.len() {
                let end = (at + size).min(current.len());
                if *budget > 0 && is_balanced(&current[at..end]) {
                    let candidate = [&current[..at], &current[end..]].concat();
                    *budget -= 1;
                    if fails(&text(&candidate)) {
                        current = candidate;
                        continue;
                    }
                }
                at += 1;
            }
            size = if size > 8 { size * 2 / 3 } else { size - 1 };
        }
        if current.len() == before || *budget == 0 {
            return text(&current);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_keeps_only_what_matters() {
        let sql = "SELECT r1.a, 'it''s' FROM t1 r1 JOIN (SELECT k FROM t2 WHERE a = 7) r2 ON r1.k = r2.k WHERE true";
        let kept = statement(sql, &mut 10_000, |s| s.contains("t2") && s.contains('7'));
        assert_eq!(kept, "t2 7");
        assert_eq!(tokens("a->>'x y' <> $1::int[]"), ["a", "->>", "'x y'", "<>", "$1", "::", "int", "[", "]"]);
    }

    #[test]
    fn a_list_keeps_only_what_matters() {
        let items: Vec<u32> = (0..50).collect();
        assert_eq!(list(&items, &mut 1000, |l| l.contains(&7) && l.contains(&31)), [7, 31]);
    }
}
