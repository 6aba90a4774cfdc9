//! The current addresses of the nodes: a node that is restarted gets another port.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fastrand::Rng;

/// The address of each node that has one.
#[derive(Debug)]
pub struct Addresses(Mutex<Vec<Option<SocketAddr>>>);

impl Addresses {
    /// No node listens yet.
    pub fn new(nodes: usize) -> Self {
        Addresses(Mutex::new(vec![None; nodes]))
    }

    /// Sets the address of a node; `None` while it does not listen.
    pub fn set(&self, node: usize, address: Option<SocketAddr>) {
        if let Some(known) = self.lock().get_mut(node) {
            *known = address;
        }
    }

    /// A random node that listens, another than `but` if there is one.
    pub fn pick(&self, but: Option<SocketAddr>, random: &mut Rng) -> Option<SocketAddr> {
        let mut known = self.all();
        if known.len() > 1 {
            known.retain(|address| Some(*address) != but);
        }
        (!known.is_empty()).then(|| known[random.usize(..known.len())])
    }

    /// Every node that listens.
    pub fn all(&self) -> Vec<SocketAddr> {
        self.lock().iter().flatten().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<SocketAddr>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
