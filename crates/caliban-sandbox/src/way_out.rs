//! The way out of one call: a port in the network of its sandbox, handed out by the inner step.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::Interest;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio_util::task::AbortOnDropHandle;

use crate::egress::{Egress, Errand};

/// How long the inner step may take to hand its port out.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way out of one call. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct WayOut {
    path: PathBuf,
    _served: AbortOnDropHandle<()>,
}

impl WayOut {
    /// Waits in the background for the one port that is handed out at `path`.
    pub(crate) fn open(path: PathBuf, egress: Arc<dyn Egress>, errand: Errand) -> io::Result<Self> {
        let listener = UnixListener::bind(&path)?;
        let socket = path.clone();
        let served = AbortOnDropHandle::new(tokio::spawn(async move {
            let handed = tokio::time::timeout(PATIENCE, handed_out(listener)).await;
            // The inner step was the first and only one to be heard here.
            let _ = std::fs::remove_file(socket);
            if let Ok(Ok(port)) = handed {
                let _serving = egress.serve(port, errand);
                std::future::pending::<()>().await;
            }
        }));
        Ok(Self {
            path,
            _served: served,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        // It is gone already where the call began.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn handed_out(listener: UnixListener) -> io::Result<TcpListener> {
    let (stream, _) = listener.accept().await?;
    drop(listener);
    let port = loop {
        stream.readable().await?;
        match stream.try_io(Interest::READABLE, || receive(&stream)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => break received?,
        }
    };
    let port = std::net::TcpListener::from(port);
    port.set_nonblocking(true)?;
    TcpListener::from_std(port)
}

fn receive(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        stream,
        &mut [io::IoSliceMut::new(&mut byte)],
        &mut message,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(mut sockets) = part
            && let Some(socket) = sockets.next()
        {
            return Ok(socket);
        }
    }
    Err(io::Error::other("no port was handed out"))
}
