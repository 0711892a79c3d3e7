//! A stretch of wire between a router and a server on which things go wrong when they are told to: at a message that
//! contains a text the connection is cut, or goes silent.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Result;

/// What happens to a connection, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is cut before the message arrives.
    CutBefore,
    /// The message arrives, and the connection is cut before its answer does.
    CutAfter,
    /// The message never arrives, and neither does anything else; nothing is closed.
    SilentBefore,
    /// The same, but the message arrives; only its answer does not.
    SilentAfter,
}

#[derive(Debug, Clone)]
struct Plan {
    text: Vec<u8>,
    fault: Fault,
    /// So many connections still meet it.
    times: usize,
}

#[derive(Debug)]
pub struct Proxy {
    pub port: u16,
    plan: Arc<Mutex<Option<Plan>>>,
}

impl Proxy {
    /// In front of the server at this port. Runs until the process ends.
    pub fn start(server: u16) -> Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let plan: Arc<Mutex<Option<Plan>>> = Arc::default();
        let shared = plan.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is not there closes whoever comes.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    let _ = serve(&client, &server, &shared);
                }
            }
        });
        Ok(Proxy { port, plan })
    }

    /// The next so many connections that carry `text` to the server meet the fault.
    pub fn plan(&self, text: &str, fault: Fault, times: usize) {
        *lock(&self.plan) = Some(Plan { text: text.as_bytes().to_vec(), fault, times });
    }

    /// How many connections have yet to meet it; nothing is planned any more.
    pub fn end_plan(&self) -> usize {
        lock(&self.plan).take().map_or(0, |plan| plan.times)
    }
}

fn lock(plan: &Mutex<Option<Plan>>) -> std::sync::MutexGuard<'_, Option<Plan>> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both directions of one connection, each in a thread.
fn serve(client: &TcpStream, server: &TcpStream, plan: &Arc<Mutex<Option<Plan>>>) -> Result<()> {
    for stream in [client, server] {
        stream.set_nodelay(true)?;
    }
    let silent = Arc::new(AtomicBool::new(false));
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    let (plan, muted) = (plan.clone(), silent.clone());
    std::thread::spawn(move || {
        let mut bytes = [0; 65536];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            match meets(&plan, &bytes[..n]) {
                None => {
                    if muted.load(Ordering::Acquire) {
                        continue;
                    }
                    if to.write_all(&bytes[..n]).is_err() {
                        break;
                    }
                }
                Some(Fault::CutBefore) => break,
                Some(fault) => {
                    muted.store(true, Ordering::Release);
                    if fault != Fault::SilentBefore && to.write_all(&bytes[..n]).is_err() {
                        break;
                    }
                    if fault == Fault::CutAfter {
                        // The server is done with it by then.
                        std::thread::sleep(std::time::Duration::from_millis(100));
                        break;
                    }
                }
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || {
        let mut bytes = [0; 65536];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            if !silent.load(Ordering::Acquire) && to.write_all(&bytes[..n]).is_err() {
                break;
            }
        }
        let is_silent = silent.load(Ordering::Acquire);
        // Who hears nothing does not hear of the end either.
        if !is_silent {
            let _ = to.shutdown(Shutdown::Both);
        }
        let _ = from.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn meets(plan: &Mutex<Option<Plan>>, bytes: &[u8]) -> Option<Fault> {
    let mut plan = lock(plan);
    let planned = plan.as_mut().filter(|plan| plan.times > 0)?;
    if !bytes.windows(planned.text.len()).any(|window| window == planned.text) {
        return None;
    }
    planned.times -= 1;
    Some(planned.fault)
}
