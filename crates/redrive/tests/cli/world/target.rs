//! An HTTP server for Redrive to send to.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::PATIENCE;

/// What to answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// A request that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, Vec<String>>,
    pub(crate) body: Vec<u8>,
}

type Answer = dyn Fn(&Arrival) -> Option<Reply> + Send + Sync;

/// A server that runs until the test ends.
pub(crate) struct Target {
    pub(crate) url: String,
    arrivals: Receiver<Arrival>,
    release: Option<Sender<()>>,
}

impl Target {
    /// Answers with these statuses one after the other, and then with the last one.
    pub(crate) fn answering(statuses: &'static [u16]) -> Target {
        let next = AtomicUsize::new(0);
        Target::replying(move |_| {
            let at = next.fetch_add(1, Ordering::SeqCst).min(statuses.len() - 1);
            Reply { status: statuses[at], body: format!("answer {}", at + 1) }
        })
    }

    /// Answers as `answer` says.
    pub(crate) fn replying(answer: impl Fn(&Arrival) -> Reply + Send + Sync + 'static) -> Target {
        Target::start(move |arrival| Some(answer(arrival)), None)
    }

    /// Holds every request until it is released, then answers 200.
    pub(crate) fn holding() -> Target {
        let (release, released) = channel();
        let released = Mutex::new(released);
        let answer = move |_: &Arrival| {
            released.lock().unwrap().recv().ok().map(|()| Reply { status: 200, body: "released".into() })
        };
        Target::start(answer, Some(release))
    }

    fn start(
        answer: impl Fn(&Arrival) -> Option<Reply> + Send + Sync + 'static,
        release: Option<Sender<()>>,
    ) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, arrivals) = channel();
        let answer: Arc<Answer> = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (sender, answer) = (sender.clone(), answer.clone());
                thread::spawn(move || serve(&stream, &sender, &*answer));
            }
        });
        Target { url, arrivals, release }
    }

    /// The next request that arrives.
    pub(crate) fn arrival(&self) -> Arrival {
        self.arrival_within(PATIENCE)
    }

    /// The next request, which may take longer than anything else.
    pub(crate) fn arrival_within(&self, patience: Duration) -> Arrival {
        self.arrivals.recv_timeout(patience).expect("no request arrived")
    }

    /// The requests that have arrived and were not read yet.
    pub(crate) fn arrived(&self) -> Vec<Arrival> {
        self.arrivals.try_iter().collect()
    }

    /// How many those are.
    pub(crate) fn unseen(&self) -> usize {
        self.arrived().len()
    }

    /// Lets one held request be answered.
    pub(crate) fn release(&self) {
        self.release.as_ref().unwrap().send(()).unwrap();
    }
}

impl Arrival {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|values| values[0].as_str())
    }
}

/// One connection: request after request, until either side has enough.
fn serve(stream: &TcpStream, arrivals: &Sender<Arrival>, answer: &Answer) {
    let mut reader = BufReader::new(stream);
    while let Some(arrival) = read(&mut reader) {
        // The test may have ended, and with it the one who counts.
        arrivals.send(arrival.clone()).ok();
        let Some(Reply { status, body }) = answer(&arrival) else { return };
        let length = body.len();
        let text = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\ncontent-type: text/plain\r\n\r\n{body}");
        if (&*stream).write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Arrival> {
    let first = line(reader)?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    loop {
        let line = line(reader)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.entry(name.to_lowercase()).or_default().push(value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |values| values[0].parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Arrival { method, path, headers, body })
}

fn line(reader: &mut BufReader<&TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = reader.read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}
