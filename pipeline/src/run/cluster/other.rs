//! A process of a run that is not the first: what it asks the first one.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fleetdiff_schemas::sink::SinkError;
use fleetdiff_schemas::time::Hop;

use super::life::{BEAT, Life, Peer};
use super::link::Link;
use super::message::{Answer, FromFirst, Question, ToFirst, read, why_unread};
use super::wire::Heard;
use super::{Beginning, Doing, text_of};
use crate::checkpoint::{Checkpoint, Keep};
use crate::counts::ids::{FunctionId, PathId};
use crate::counts::numbers::{Forgotten, Numbers};
use crate::counts::paths::Node;
use crate::rules::decisions::{Decision, DecisionLog};

/// The connection to the first process.
pub(super) struct Other {
    stream: TcpStream,
    link: Link,
    first: Arc<Peer>,
    /// Who waits for answers, in the order of their questions.
    waiting: Mutex<VecDeque<SyncSender<Answer>>>,
    life: Arc<Life>,
}

impl Debug for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Other").field("first", &self.first).finish_non_exhaustive()
    }
}

impl Other {
    /// Waits until the first process says how the run begins.
    pub(super) fn begin(mut stream: TcpStream, life: &Arc<Life>) -> std::io::Result<(Self, Beginning)> {
        let beginning = match read(&mut stream)? {
            FromFirst::Beginning(beginning) => *beginning,
            FromFirst::Failed(why) => return Err(std::io::Error::other(why)),
            _ => return Err(std::io::ErrorKind::InvalidData.into()),
        };
        let (link, first) = (Link::new(stream.try_clone()?), Peer::new(0));
        let (waiting, life) = (Mutex::default(), Arc::clone(life));
        Ok((Self { stream, link, first, waiting, life }, beginning))
    }

    /// Begins to listen.
    pub(super) fn start(self: &Arc<Self>, doing: &Arc<Doing>) -> std::io::Result<()> {
        let to_say = Arc::clone(self);
        self.life.last_words(Box::new(move |text| {
            drop(to_say.link.try_send(&ToFirst::Failed(text.to_owned())));
        }));
        self.first.heard();
        let mut heard = Heard::new(self.stream.try_clone()?, Arc::clone(&self.first));
        let (other, of_thread) = (Arc::clone(self), Arc::clone(doing));
        std::thread::Builder::new().name("process-0".to_owned()).spawn(move || {
            while !other.first.has_ended() {
                match read(&mut heard) {
                    Ok(said) => other.hear(said, &of_thread),
                    Err(error) => return other.life.lose(0, &why_unread(&error)),
                }
            }
        })?;
        let (other, doing) = (Arc::clone(self), Arc::clone(doing));
        std::thread::Builder::new().name("beat".to_owned()).spawn(move || other.beat(&doing))?;
        Ok(())
    }

    fn hear(&self, said: FromFirst, doing: &Doing) {
        match said {
            FromFirst::Answer(answer) => {
                let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                // NB: whoever has asked waits, unless its thread has ended with the process.
                if let Some(waiting) = waiting {
                    drop(waiting.send(answer));
                }
            }
            FromFirst::Beat { stop, flushes, closed } => {
                doing.pulse.output_elsewhere(flushes, closed);
                if stop && !doing.stop.swap(true, Ordering::AcqRel) {
                    tracing::info!("the run stops");
                }
            }
            FromFirst::Ended => self.first.ended(),
            FromFirst::Failed(why) => self.life.lose(0, &why),
            FromFirst::Beginning(_) => self.life.lose(0, "it has begun anew"),
        }
    }

    /// Says that it is alive, and looks whether the first process is.
    fn beat(&self, doing: &Doing) {
        while self.life.is_running() {
            let stop = doing.stop.load(Ordering::Acquire);
            // NB: in this order. Whoever fails says so before it stops.
            if let Some(why) = doing.failed() {
                return self.fail(&why);
            }
            drop(self.link.try_send(&ToFirst::Beat { stop }));
            if self.first.is_silent() {
                self.life.lose(0, &Peer::why_silent());
            }
            std::thread::sleep(BEAT);
        }
    }

    /// This process has failed.
    pub(super) fn fail(&self, why: &str) {
        drop(self.link.send(&ToFirst::Failed(why.to_owned())));
    }

    /// All workers have ended; waits until those of the first process have.
    pub(super) fn end(&self) {
        drop(self.link.send(&ToFirst::Ended));
        while !self.first.has_ended() && !self.first.is_silent() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Without an answer the run is lost, and this process ends.
    fn ask(&self, question: Question) -> Answer {
        let (give, answer) = sync_channel(1);
        let wait = || self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(give);
        let sent = self.link.send_after(&ToFirst::Question(question), wait);
        match sent.map(|()| answer.recv()) {
            Ok(Ok(Answer::Failed(why))) => self.nothing_follows(&why),
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => self.nothing_follows("it does not answer"),
            Err(error) => self.nothing_follows(&error.to_string()),
        }
    }

    fn say(&self, said: &ToFirst) {
        if let Err(error) = self.link.send(said) {
            self.nothing_follows(&error.to_string());
        }
    }

    /// The run is lost, and this process ends. Whoever calls it waits for that.
    fn nothing_follows(&self, why: &str) -> ! {
        self.life.lose(0, why);
        loop {
            std::thread::park();
        }
    }
}

impl Numbers for Other {
    fn of_names(&self, names: &[Arc<str>]) -> Vec<FunctionId> {
        match self.ask(Question::NumbersOf(names.to_vec())) {
            Answer::Numbers(numbers) if numbers.len() == names.len() => numbers,
            _ => self.nothing_follows("it answers something else"),
        }
    }

    fn names(&self, functions: &[FunctionId]) -> Vec<Arc<str>> {
        match self.ask(Question::Names(functions.to_vec())) {
            Answer::Names(names) if names.len() == functions.len() => names,
            _ => self.nothing_follows("it answers something else"),
        }
    }

    fn of_stacks(&self, stacks: &[Vec<FunctionId>]) -> Vec<Vec<PathId>> {
        match self.ask(Question::PathsOf(stacks.to_vec())) {
            Answer::Paths(paths) if paths.len() == stacks.len() => paths,
            _ => self.nothing_follows("it answers something else"),
        }
    }

    fn nodes(&self, paths: &[PathId]) -> Vec<(PathId, Node)> {
        match self.ask(Question::Nodes(paths.to_vec())) {
            Answer::Nodes(nodes) => nodes,
            _ => self.nothing_follows("it answers something else"),
        }
    }

    fn let_go(&self, forgotten: Forgotten) {
        self.say(&ToFirst::LetGo(forgotten));
    }

    fn finish_round(&self, hop: u64) {
        self.say(&ToFirst::RoundFinished(Hop(hop)));
    }
}

/// The log of the first process.
pub(super) struct LogOfFirst(pub(super) Arc<Other>);

impl DecisionLog for LogOfFirst {
    fn append(&mut self, decision: &Decision) -> Result<(), SinkError> {
        match self.0.ask(Question::Decision(text_of(decision))) {
            Answer::Logged => Ok(()),
            _ => self.0.nothing_follows("it answers something else"),
        }
    }
}

/// Sends states to the first process.
pub(super) struct ToFirstProcess(pub(super) Arc<Other>);

impl Keep for ToFirstProcess {
    fn keep(&mut self, checkpoint: Checkpoint) {
        self.0.say(&ToFirst::States(checkpoint));
    }

    fn refused(&mut self, boundary: Hop) {
        self.0.say(&ToFirst::Refused(boundary));
    }
}
