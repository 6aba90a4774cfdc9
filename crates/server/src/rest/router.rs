//! From a method and a path to a route.
//!
//! A path is split at its slashes before its parameters are percent-decoded, so the value of a parameter may contain an
//! encoded slash.

use std::sync::LazyLock;

use http::Method;

use super::problem::Refusal;
use super::route::Route;
use super::routes::ROUTES;
use crate::percent;

/// A route that matches a request, and the values of its path's parameters.
#[derive(Debug)]
pub(crate) struct RouteMatch {
    pub(crate) route: &'static Route,
    pub(crate) parameters: PathParameters,
}

/// The values of a path's parameters with their names.
#[derive(Debug, Default)]
pub(crate) struct PathParameters(Vec<(&'static str, String)>);

impl PathParameters {
    /// The value of the parameter `name`; empty if the path of the route does not have it.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }
}

/// A route with the segments of its path.
struct CompiledRoute {
    route: &'static Route,
    segments: Vec<Segment>,
}

/// A part of a path between two slashes. A literal comes first in the order: it takes precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Literal(&'static str),
    Parameter(&'static str),
}

/// The routes; those that take precedence come first, those with the same path in the order of the table.
static COMPILED: LazyLock<Vec<CompiledRoute>> = LazyLock::new(|| {
    let mut compiled: Vec<CompiledRoute> = ROUTES.iter().map(|route| CompiledRoute::new(route)).collect();
    compiled.sort_by(|one, other| one.segments.cmp(&other.segments));
    compiled
});

/// The route for a request. HEAD is GET without the body.
///
/// Of several paths that match, the one whose first difference is a literal is taken, whatever the method:
/// `/retry-tasks/batch` is not a task.
pub(crate) fn find(method: &Method, path: &str) -> Result<RouteMatch, Refusal> {
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    let given: Vec<&str> = path.split('/').collect();
    let Some(first) = COMPILED.iter().position(|compiled| compiled.matches(&given)) else {
        return Err(Refusal::NoSuchPath);
    };
    let mut allow: Vec<&str> = Vec::new();
    for compiled in COMPILED[first..].iter().take_while(|other| other.route.path == COMPILED[first].route.path) {
        if compiled.route.method == *wanted {
            return Ok(RouteMatch { route: compiled.route, parameters: compiled.parameters(&given)? });
        }
        allow.push(compiled.route.method.as_str());
        if compiled.route.method == Method::GET {
            allow.push(Method::HEAD.as_str());
        }
    }
    Err(Refusal::MethodNotAllowed { method: method.to_string(), allow: allow.join(", ") })
}

impl CompiledRoute {
    fn new(route: &'static Route) -> Self {
        let segment = |text: &'static str| match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => Segment::Parameter(name),
            None => Segment::Literal(text),
        };
        CompiledRoute { route, segments: route.path.split('/').map(segment).collect() }
    }

    fn matches(&self, given: &[&str]) -> bool {
        let is_same = |(segment, given): (&Segment, &&str)| match segment {
            Segment::Literal(text) => text == given,
            Segment::Parameter(_) => !given.is_empty(),
        };
        self.segments.len() == given.len() && self.segments.iter().zip(given).all(is_same)
    }

    /// The decoded values of the parameters.
    fn parameters(&self, given: &[&str]) -> Result<PathParameters, Refusal> {
        let mut parameters = Vec::new();
        for (segment, encoded) in self.segments.iter().zip(given) {
            if let Segment::Parameter(name) = segment {
                parameters.push((*name, percent::decode(encoded, false).ok_or(Refusal::NoSuchPath)?));
            }
        }
        Ok(PathParameters(parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_find_their_routes() {
        for (method, path, expected) in [
            (Method::POST, "/retry-tasks", Some(("submitTask", vec![]))),
            (Method::POST, "/retry-tasks/batch", Some(("submitBatch", vec![]))),
            (Method::GET, "/retry-tasks/batch", None),
            (Method::HEAD, "/retry-tasks/x", Some(("getTask", vec!["x"]))),
            (Method::GET, "/retry-tasks/x/attempts", Some(("listAttempts", vec!["x"]))),
            (Method::GET, "/retry-policies/a%3Ab", Some(("getPolicy", vec!["a:b"]))),
            (Method::GET, "/", Some(("root", vec![]))),
            (Method::GET, "/retry-tasks/by-key/a%2Fb", Some(("getTaskByKey", vec!["a/b"]))),
            (Method::GET, "/retry-tasks/by-key/attempts", Some(("getTaskByKey", vec!["attempts"]))),
            (Method::POST, "/retry-tasks/by-key/replay", None),
            (Method::POST, "/idempotency-records/batch", Some(("reserveBatch", vec![]))),
            (Method::POST, "/idempotency-records/pay/a%2Fb%25/reserve", Some(("reserveRecord", vec!["pay", "a/b%"]))),
            (Method::GET, "/idempotency-records/pay/reserve", Some(("getRecord", vec!["pay", "reserve"]))),
            (Method::POST, "/idempotency-records/pay/a/b/reserve", None),
            (Method::POST, "/idempotency-records/pay//reserve", None),
            (Method::POST, "/inboxes/c/events/confirm/confirm", Some(("confirmEvent", vec!["c", "confirm"]))),
            (Method::GET, "/retry-tasks/", None),
            (Method::GET, "/retry-tasks//attempts", None),
            (Method::GET, "/retry-tasks/x/y/attempts", None),
            (Method::GET, "/retry-policies/%zz", None),
            (Method::GET, "/nothing", None),
            (Method::GET, "", None),
            (Method::PUT, "/retry-tasks", None),
        ] {
            let found = find(&method, path).ok();
            let found = found.as_ref().map(|found| {
                (found.route.id, found.parameters.0.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>())
            });
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
