//! An HTTP/1.1 connection, used by one send at a time.
//!
//! It has no task of its own: the send that uses it polls it. That saves trips through the scheduler, it tells at once
//! whether the connection can be used again, and a send that is dropped takes its socket with it. An unused connection
//! is not polled at all; whether the peer has closed it meanwhile is looked at before its next use.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::checked_out::SendFailure;
use crate::co_poll::CoPoll;
use crate::message::Message;
use crate::request_body::RequestBody;

/// The most bytes of an answer's head, and of anything else that is buffered for a connection.
const BUFFER_LIMIT: usize = 64 * 1024;

/// An open HTTP/1.1 connection.
pub(crate) struct Connection {
    requests: http1::SendRequest<RequestBody>,
    /// Moves the bytes; gone once the connection is closed.
    driver: Option<Driver>,
    turn: CoPoll,
}

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

impl Connection {
    /// Speaks HTTP/1.1 on `io`.
    pub(crate) async fn handshake<I>(io: I) -> hyper::Result<Self>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (requests, driver) = http1::Builder::new().max_buf_size(BUFFER_LIMIT).handshake(TokioIo::new(io)).await?;
        Ok(Connection { requests, driver: Some(Box::pin(driver)), turn: CoPoll::new() })
    }

    /// Sends `message` and waits for the head of the answer.
    pub(crate) async fn send(&mut self, message: Message) -> Result<Response<Incoming>, SendFailure> {
        let sent = self.requests.try_send_request(*message);
        self.drive(sent).await.map_err(SendFailure::from)
    }

    /// Moves bytes until `work`, which waits for them, is done.
    pub(crate) async fn drive<W: Future>(&mut self, work: W) -> W::Output {
        let Connection { driver, turn, .. } = self;
        let mut work = pin!(work);
        poll_fn(|cx| {
            turn.poll(cx, |cx| {
                // The work first: it may be done already, or else it says that it wants more.
                if let Poll::Ready(done) = work.as_mut().poll(cx) {
                    return Poll::Ready(done);
                }
                move_bytes(driver, cx);
                work.as_mut().poll(cx)
            })
        })
        .await
    }

    /// Whether another message can be sent: the connection is open, and nothing of the last exchange is left on it.
    pub(crate) async fn is_free(&mut self) -> bool {
        let Connection { driver, turn, requests } = self;
        poll_fn(|cx| {
            turn.poll(cx, |cx| {
                move_bytes(driver, cx);
                Poll::Ready(driver.is_some() && requests.is_ready())
            })
        })
        .await
    }
}

fn move_bytes(driver: &mut Option<Driver>, cx: &mut Context<'_>) {
    // How it ended is told to the work that waits. Dropping the driver hands back a message that it never took.
    if driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready()) {
        *driver = None;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    fn message() -> Message {
        let mut message = Message::new(http::Request::new(RequestBody::whole(Bytes::from_static(b"body"))));
        *message.method_mut() = http::Method::POST;
        message
    }

    async fn answer(server: &mut DuplexStream, answer: &[u8]) {
        let mut request = [0; 512];
        assert!(server.read(&mut request).await.unwrap() > 0);
        server.write_all(answer).await.unwrap();
    }

    async fn exchange(connection: &mut Connection, server: &mut DuplexStream, bytes: &[u8]) -> Bytes {
        let (response, ()) = tokio::join!(connection.send(message()), answer(server, bytes));
        let body = response.ok().unwrap().into_body().collect();
        connection.drive(body).await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn a_connection_is_free_again_when_the_answer_was_read() {
        let (client, mut server) = tokio::io::duplex(1024);
        let mut connection = Connection::handshake(client).await.unwrap();
        for bytes in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ] {
            assert_eq!(exchange(&mut connection, &mut server, bytes.as_bytes()).await, "ok");
            assert!(connection.is_free().await);
        }
        exchange(&mut connection, &mut server, b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
        assert!(!connection.is_free().await);
    }

    #[tokio::test]
    async fn a_connection_that_the_peer_closed_is_not_free() {
        let (client, mut server) = tokio::io::duplex(1024);
        let mut connection = Connection::handshake(client).await.unwrap();
        exchange(&mut connection, &mut server, b"HTTP/1.1 204 No Content\r\n\r\n").await;
        drop(server);
        assert!(!connection.is_free().await);
    }

    #[tokio::test]
    async fn a_message_that_was_not_begun_is_handed_back() {
        let (client, mut server) = tokio::io::duplex(1024);
        let mut connection = Connection::handshake(client).await.unwrap();
        exchange(&mut connection, &mut server, b"HTTP/1.1 204 No Content\r\n\r\n").await;
        assert!(connection.is_free().await);
        drop(server);
        let unsent = connection.send(message()).await.err().unwrap();
        assert_eq!(unsent.message.unwrap().method(), "POST");
    }

    #[tokio::test]
    async fn a_message_that_was_begun_is_not_handed_back() {
        let (client, mut server) = tokio::io::duplex(1024);
        let mut connection = Connection::handshake(client).await.unwrap();
        let read_one_byte_and_close = async move {
            server.read_u8().await.unwrap();
            drop(server);
        };
        let (sent, ()) = tokio::join!(connection.send(message()), read_one_byte_and_close);
        assert!(sent.err().unwrap().message.is_none());
    }
}
