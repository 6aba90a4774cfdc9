//! Problem details (RFC 9457), made readable.

use std::fmt;

use serde::Deserialize;

use super::Answer;

/// How much of an answer that is no problem document is shown.
const SHOWN: usize = 300;

/// What a server says went wrong.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: String,
    detail: String,
    field: Option<String>,
    errors: Vec<Fault>,
    task_id: Option<String>,
    current_version: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Fault {
    field: String,
    message: String,
}

impl Problem {
    /// The problem in an answer; whatever else it holds becomes the detail of one.
    pub fn read(answer: &Answer) -> Self {
        match serde_json::from_slice::<Problem>(&answer.body) {
            Ok(problem) if !problem.title.is_empty() => problem,
            _ => Problem {
                title: format!("the server answered {}", answer.status),
                detail: String::from_utf8_lossy(&answer.body).chars().take(SHOWN).collect(),
                ..Problem::default()
            },
        }
    }
}

impl Problem {
    /// Whether a Redrive server said it, and not a proxy or another server.
    pub fn is_of_redrive(&self) -> bool {
        self.kind.starts_with("/problems/")
    }

    /// Whether a submission named a policy that does not exist.
    pub fn is_unknown_policy(&self) -> bool {
        self.kind == "/problems/unknown-policy"
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title.trim())?;
        if !self.detail.trim().is_empty() {
            write!(f, ": {}", self.detail.trim())?;
        }
        for Fault { field, message } in &self.errors {
            // One fault is usually said in the detail already.
            if !self.detail.contains(message.as_str()) || !self.detail.contains(field.as_str()) {
                write!(f, "\n  {field}: {message}")?;
            }
        }
        if let Some(field) = self.field.as_ref().filter(|field| self.errors.is_empty() && !self.detail.contains(*field))
        {
            write!(f, "\n  field: {field}")?;
        }
        if let Some(task) = self.task_id.as_ref().filter(|task| !self.detail.contains(*task)) {
            write!(f, "\n  task: {task}")?;
        }
        if let Some(version) = self.current_version {
            write!(f, "\n  current version: {version}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hyper::{HeaderMap, StatusCode};

    use super::*;

    fn shown(status: u16, body: &'static str) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        Problem::read(&Answer { status, headers: HeaderMap::new(), body: Bytes::from(body) }).to_string()
    }

    #[test]
    fn a_problem_is_a_sentence_and_its_fields() {
        let body = r#"{"type":"/problems/invalid","title":"Invalid task","status":422,"detail":"2 fields are wrong",
            "field":"targetUrl","errors":[{"field":"targetUrl","message":"must be absolute"},{"field":"method","message":"is empty"}]}"#;
        assert_eq!(
            shown(422, body),
            "Invalid task: 2 fields are wrong\n  targetUrl: must be absolute\n  method: is empty"
        );
    }

    #[test]
    fn what_is_no_problem_document_is_shown_as_it_is() {
        assert_eq!(
            shown(502, "<html>bad gateway</html>"),
            "the server answered 502 Bad Gateway: <html>bad gateway</html>"
        );
        assert_eq!(shown(404, ""), "the server answered 404 Not Found");
    }
}
