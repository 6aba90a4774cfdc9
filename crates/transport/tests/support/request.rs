//! A request as a server saw it.

/// A request as a server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Path and query, as sent.
    pub target: String,
    /// The header fields in the order and spelling in which they came.
    pub headers: Vec<(String, String)>,
    /// The body, if it was read.
    pub body: Vec<u8>,
}

impl Request {
    /// The request whose head these bytes are.
    pub fn parse(head: &[u8]) -> Option<Request> {
        let head = String::from_utf8_lossy(head);
        let mut lines = head.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
        let field = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers = lines.take_while(|line| !line.is_empty()).filter_map(field).collect();
        Some(Request { method, target, headers, body: Vec::new() })
    }

    /// All values of the header `name`, in their order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let named = |(field, _): &&(String, String)| field.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, value)| value.as_str()).collect()
    }

    /// The value of the header `name`, which must not come twice.
    pub fn one(&self, name: &str) -> Option<&str> {
        let values = self.all(name);
        assert!(values.len() <= 1, "{name} came {} times", values.len());
        values.first().copied()
    }
}
