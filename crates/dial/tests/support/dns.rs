//! A DNS server that answers as it is told, over UDP and TCP.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

/// After this long, a test that waits for something has failed. No assertion depends on it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The size of a message over UDP, and more than enough for the questions here.
const DATAGRAM: usize = 1_500;
const HEADER: usize = 12;
const A: u16 = 1;
const TTL: u32 = 60;

/// What a question for IPv4 addresses is answered with. Nothing has an IPv6 address; that question gets the same answer
/// without the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// This address.
    Address(Ipv4Addr),
    /// This address, but only over TCP: it is too much for UDP.
    OverTcp(Ipv4Addr),
    /// There is no such name.
    NoSuchName,
    /// The server has failed (SERVFAIL).
    Failure,
    /// No answer at all.
    Silence,
    /// This address, when [`DnsServer::release`] is called.
    Held(Ipv4Addr),
}

/// A question as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The name, without the last dot.
    pub name: String,
    /// Whether it was for IPv4 addresses.
    pub ipv4: bool,
    /// Whether it came over TCP.
    pub tcp: bool,
}

/// The server. Its threads end with the process.
pub struct DnsServer {
    address: SocketAddr,
    socket: UdpSocket,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    questions: watch::Sender<Vec<Question>>,
    /// How often each name and family was asked for.
    asked: Mutex<HashMap<(String, bool), usize>>,
    held: Mutex<Held>,
}

/// Answers that are held back until they are released; a question that is noted after that is answered at once.
#[derive(Default)]
struct Held {
    answers: Vec<(Vec<u8>, SocketAddr)>,
    is_released: bool,
}

impl DnsServer {
    /// Starts a server that answers the `n`-th question for a name and family (from 1) with `reply(name, n)`.
    pub fn start(reply: impl Fn(&str, usize) -> Reply + Clone + Send + 'static) -> DnsServer {
        let (socket, listener) = sockets();
        let (address, seen) = (socket.local_addr().unwrap(), Arc::new(Seen::default()));
        thread::spawn({
            let (socket, seen, reply) = (socket.try_clone().unwrap(), seen.clone(), reply.clone());
            move || serve_udp(&socket, &seen, reply)
        });
        thread::spawn({
            let seen = seen.clone();
            move || {
                for stream in listener.incoming() {
                    let (stream, seen, reply) = (stream.unwrap(), seen.clone(), reply.clone());
                    thread::spawn(move || serve_tcp(stream, &seen, &reply));
                }
            }
        });
        DnsServer { address, socket, seen }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The questions that came in.
    pub fn questions(&self) -> Vec<Question> {
        self.seen.questions.borrow().clone()
    }

    /// Waits until the questions are such.
    pub async fn wait_for(&self, reached: impl Fn(&[Question]) -> bool) {
        let mut questions = self.seen.questions.subscribe();
        let waited = tokio::time::timeout(PATIENCE, questions.wait_for(|questions| reached(questions))).await;
        assert!(waited.is_ok(), "waited in vain; saw {} questions", self.questions().len());
    }

    /// Sends the answers that were held back.
    pub fn release(&self) {
        let mut held = self.seen.held.lock().unwrap();
        held.is_released = true;
        for (answer, asker) in held.answers.drain(..) {
            self.socket.send_to(&answer, asker).unwrap();
        }
    }
}

/// A socket and a listener on the same port.
fn sockets() -> (UdpSocket, TcpListener) {
    loop {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        if let Ok(listener) = TcpListener::bind(socket.local_addr().unwrap()) {
            return (socket, listener);
        }
    }
}

fn serve_udp(socket: &UdpSocket, seen: &Seen, reply: impl Fn(&str, usize) -> Reply) {
    let mut datagram = [0; DATAGRAM];
    loop {
        let (length, asker) = socket.recv_from(&mut datagram).unwrap();
        let message = &datagram[..length];
        let (question, nth) = seen.note(message, false);
        match reply(&question.name, nth) {
            Reply::Silence => {}
            Reply::Held(address) => {
                let answer = answer(message, &question, Reply::Address(address));
                let mut held = seen.held.lock().unwrap();
                match held.is_released {
                    true => drop(socket.send_to(&answer, asker)),
                    false => held.answers.push((answer, asker)),
                }
            }
            // The client may be gone.
            reply => drop(socket.send_to(&answer(message, &question, reply), asker)),
        }
    }
}

/// Answers all questions of a connection; a client that goes away ends it.
fn serve_tcp(mut stream: TcpStream, seen: &Seen, reply: &impl Fn(&str, usize) -> Reply) {
    let mut length = [0; 2];
    while stream.read_exact(&mut length).is_ok() {
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message).unwrap();
        let (question, nth) = seen.note(&message, true);
        let answer = answer(&message, &question, reply(&question.name, nth));
        let mut framed = u16::try_from(answer.len()).unwrap().to_be_bytes().to_vec();
        framed.extend(answer);
        stream.write_all(&framed).unwrap();
    }
}

impl Seen {
    /// Keeps the question of `message`, and says how often it has been asked.
    fn note(&self, message: &[u8], tcp: bool) -> (Question, usize) {
        let (name, family, _) = parse(message);
        let question = Question { name, ipv4: family == A, tcp };
        let mut asked = self.asked.lock().unwrap();
        let nth = asked.entry((question.name.clone(), question.ipv4)).or_default();
        *nth += 1;
        self.questions.send_modify(|questions| questions.push(question.clone()));
        (question, *nth)
    }
}

/// The name and family that `message` asks for, and where its question ends.
fn parse(message: &[u8]) -> (String, u16, usize) {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    while message[at] != 0 {
        let end = at + 1 + usize::from(message[at]);
        labels.push(String::from_utf8_lossy(&message[at + 1..end]).into_owned());
        at = end;
    }
    (labels.join("."), u16::from_be_bytes([message[at + 1], message[at + 2]]), at + 5)
}

fn answer(message: &[u8], question: &Question, reply: Reply) -> Vec<u8> {
    const ANSWER_TO_RECURSION: u16 = 0x8180;
    const TRUNCATED: u16 = 0x0200;
    let (flags, address) = match reply {
        Reply::Address(address) | Reply::Held(address) => (0, Some(address)),
        Reply::OverTcp(address) if question.tcp => (0, Some(address)),
        Reply::OverTcp(_) => (TRUNCATED, None),
        Reply::Failure => (2, None),
        Reply::NoSuchName => (3, None),
        Reply::Silence => unreachable!("it is not answered"),
    };
    let address = address.filter(|_| question.ipv4);
    let (_, _, end) = parse(message);
    let mut answer = message[..2].to_vec();
    answer.extend((ANSWER_TO_RECURSION | flags).to_be_bytes());
    answer.extend([0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
    answer.extend(&message[HEADER..end]);
    if let Some(address) = address {
        // The name of the question, its family and class.
        answer.extend([0xC0, 0x0C, 0, 1, 0, 1]);
        answer.extend(TTL.to_be_bytes());
        answer.extend([0, 4]);
        answer.extend(address.octets());
    }
    answer
}
