//! `GET /nodes`

use http::Method;

use crate::operations::list_nodes;
use crate::rest::call::Call;
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::{NodeList, ShownNode};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/nodes",
    id: "listNodes",
    group: Group::Service,
    summary: "List the nodes",
    description: "Every process that uses the store, with the leases that it holds. An embedded store has one: this process.",
    effect: Effect::Reads,
    access: Access::Administer,
    parameters: &[],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The nodes, by name.",
        headers: &[],
        content: Content::Json(of::<NodeList<'static>>),
    }],
    problems: &[],
    example: Example {
        target: "/nodes",
        headers: &[],
        answer: r#"{
  "nodes": [
    {
      "node": "worker-1",
      "state": "ALIVE",
      "address": "10.0.0.5:8620",
      "version": "0.1.0",
      "startedAt": 1731600000000,
      "seenAt": 1731600123000,
      "inFlight": 12,
      "leases": 14
    }
  ]
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let nodes = list_nodes(call.app()).await?;
    Reply::json(200, &NodeList { nodes: nodes.iter().map(ShownNode::new).collect() })
}
