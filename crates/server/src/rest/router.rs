//! From a method and a path to a route.

use std::sync::LazyLock;

use http::Method;

use super::problem::Refusal;
use super::route::Route;
use super::routes::ROUTES;
use crate::percent;

/// A route that matches a request, and the value of its path's parameter.
#[derive(Debug)]
pub(crate) struct RouteMatch {
    pub(crate) route: &'static Route,
    pub(crate) parameter: Option<String>,
}

/// A route with its path split at the parameter.
struct CompiledRoute {
    route: &'static Route,
    before: &'static str,
    /// The path after the parameter; `None` if it has none.
    after: Option<&'static str>,
}

static COMPILED: LazyLock<Vec<CompiledRoute>> =
    LazyLock::new(|| ROUTES.iter().map(|route| CompiledRoute::new(route)).collect());

/// The route for a request. HEAD is GET without the body.
pub(crate) fn find(method: &Method, path: &str) -> Result<RouteMatch, Refusal> {
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    // A literal path takes precedence over one with a parameter: `/retry-tasks/batch` is not a task.
    let is_literal = COMPILED.iter().any(|compiled| compiled.after.is_none() && compiled.before == path);
    let mut allow: Vec<&str> = Vec::new();
    for compiled in COMPILED.iter().filter(|compiled| compiled.after.is_none() == is_literal) {
        let Some(parameter) = compiled.matches(path) else { continue };
        if compiled.route.method == *wanted {
            let parameter = match parameter {
                Some(encoded) => Some(percent::decode(encoded, false).ok_or(Refusal::NoSuchPath)?),
                None => None,
            };
            return Ok(RouteMatch { route: compiled.route, parameter });
        }
        allow.push(compiled.route.method.as_str());
        if compiled.route.method == Method::GET {
            allow.push(Method::HEAD.as_str());
        }
    }
    if allow.is_empty() {
        return Err(Refusal::NoSuchPath);
    }
    Err(Refusal::MethodNotAllowed { method: method.to_string(), allow: allow.join(", ") })
}

impl CompiledRoute {
    fn new(route: &'static Route) -> Self {
        let (before, after) = match route.path.split_once('{') {
            Some((before, rest)) => (before, rest.split_once('}').map(|(_, after)| after)),
            None => (route.path, None),
        };
        CompiledRoute { route, before, after }
    }

    /// If the path matches, the value of its parameter.
    fn matches<'p>(&self, path: &'p str) -> Option<Option<&'p str>> {
        let Some(after) = self.after else { return (path == self.before).then_some(None) };
        let parameter = path.strip_prefix(self.before)?.strip_suffix(after)?;
        (!parameter.is_empty() && !parameter.contains('/')).then_some(Some(parameter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_find_their_routes() {
        for (method, path, expected) in [
            (Method::POST, "/retry-tasks", Some(("submitTask", None))),
            (Method::POST, "/retry-tasks/batch", Some(("submitBatch", None))),
            (Method::GET, "/retry-tasks/batch", None),
            (Method::HEAD, "/retry-tasks/x", Some(("getTask", Some("x")))),
            (Method::GET, "/retry-tasks/x/attempts", Some(("listAttempts", Some("x")))),
            (Method::GET, "/retry-policies/a%3Ab", Some(("getPolicy", Some("a:b")))),
            (Method::GET, "/retry-tasks/", None),
            (Method::GET, "/retry-tasks//attempts", None),
            (Method::GET, "/retry-tasks/x/y/attempts", None),
            (Method::GET, "/retry-policies/%zz", None),
            (Method::GET, "/nothing", None),
            (Method::PUT, "/retry-tasks", None),
        ] {
            let found = find(&method, path).ok();
            let found = found.as_ref().map(|found| (found.route.id, found.parameter.as_deref()));
            assert_eq!(found, expected, "{method} {path}");
        }
    }

    #[test]
    fn another_method_is_told_which_ones_there_are() {
        for (path, expected) in [
            ("/retry-tasks", "POST, GET, HEAD"),
            ("/retry-tasks/x", "GET, HEAD, DELETE"),
            ("/retry-tasks/x/retry-now", "POST"),
            ("/retry-tasks/x/replay", "POST"),
            ("/retry-tasks/batch", "POST"),
            ("/livez", "GET, HEAD"),
        ] {
            match find(&Method::PATCH, path) {
                Err(Refusal::MethodNotAllowed { allow, .. }) => assert_eq!(allow, expected, "{path}"),
                other => panic!("{path}: {other:?}"),
            }
        }
    }
}
