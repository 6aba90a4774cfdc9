//! Wrong answers in place of those of the S3-compatible server.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::Service;
use s3s::service::S3Service;
use s3s::{Body, HttpError, HttpResponse};

/// What a request gets in place of the server's own answer.
#[derive(Debug, Clone)]
pub enum Fault {
    /// This status, and this body; the request is not carried out.
    Answer(u16, String),
    /// The server's own head, this many bytes of its body, and the end of the connection.
    CutAfter(u64),
    /// The server's own head with another `Content-Length`, and as many bytes of its body.
    Shortened(u64),
}

impl Fault {
    /// What S3 says with this code when something is not there.
    pub fn not_found(code: &str) -> Fault {
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>It does not exist</Message></Error>"
        );
        Fault::Answer(404, body)
    }
}

type Choose = Box<dyn Fn(&str, &str) -> Option<Fault> + Send>;

/// Which request gets which fault, by method and path.
#[derive(Clone, Default)]
pub(super) struct Faults(Arc<Mutex<Option<Choose>>>);

impl Faults {
    pub(super) fn set(&self, choose: impl Fn(&str, &str) -> Option<Fault> + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(choose));
    }

    /// The server, with these faults.
    pub(super) fn before(
        self,
        server: S3Service,
    ) -> impl Service<Request<Incoming>, Response = HttpResponse, Error = HttpError, Future: Send> {
        hyper::service::service_fn(move |request: Request<Incoming>| {
            let (method, path) = (request.method().as_str(), request.uri().path());
            let fault = self.0.lock().unwrap().as_ref().and_then(|choose| choose(method, path));
            let server = server.clone();
            async move {
                match fault {
                    None => Service::call(&server, request).await,
                    Some(Fault::Answer(status, body)) => {
                        let mut answer = HttpResponse::new(Body::from(body));
                        *answer.status_mut() = hyper::StatusCode::from_u16(status).unwrap();
                        Ok(answer)
                    }
                    Some(Fault::CutAfter(bytes)) => {
                        let answer = Service::call(&server, request).await?;
                        Ok(answer.map(|body| Body::http_body_unsync(Cut { body, left: bytes, breaks: true })))
                    }
                    Some(Fault::Shortened(bytes)) => {
                        let mut answer = Service::call(&server, request).await?;
                        answer.headers_mut().insert(hyper::header::CONTENT_LENGTH, bytes.into());
                        Ok(answer.map(|body| Body::http_body_unsync(Cut { body, left: bytes, breaks: false })))
                    }
                }
            }
        })
    }
}

/// The beginning of a body, and then its end or a failure.
struct Cut {
    body: Body,
    left: u64,
    breaks: bool,
}

impl hyper::body::Body for Cut {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(self.breaks.then(|| Err(std::io::Error::other("cut"))));
        }
        Pin::new(&mut self.body).poll_frame(cx).map(|frame| {
            let mut bytes = frame?.ok()?.into_data().ok()?;
            bytes.truncate(usize::try_from(self.left).unwrap());
            self.left -= bytes.len() as u64;
            Some(Ok(Frame::data(bytes)))
        })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
