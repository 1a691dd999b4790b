//! The first process of a run, as the others know it: it gives numbers, writes down decisions and gathers checkpoints.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::life::{BEAT, Life, Peer};
use super::link::Link;
use super::message::{Answer, FromFirst, Question, ToFirst, read, why_unread, write};
use super::wire::Heard;
use super::{Beginning, Doing, Shape, line_of};

/// The others.
#[derive(Debug)]
pub(super) struct First {
    shape: Shape,
    others: Vec<(TcpStream, Arc<Link>, Arc<Peer>)>,
    life: Arc<Life>,
}

impl First {
    /// Says to each other process how the run begins.
    pub(super) fn begin(
        shape: Shape,
        others: Vec<(usize, TcpStream)>,
        beginning: Beginning,
        life: &Arc<Life>,
    ) -> std::io::Result<Self> {
        let beginning = FromFirst::Beginning(Box::new(beginning));
        let mut begun = Vec::new();
        for (process, mut stream) in others {
            write(&mut stream, &beginning)?;
            let (link, peer) = (Arc::new(Link::new(stream.try_clone()?)), Peer::new(process));
            begun.push((stream, link, peer));
        }
        Ok(Self { shape, others: begun, life: Arc::clone(life) })
    }

    /// Begins to do what the others ask for.
    pub(super) fn start(self: &Arc<Self>, doing: &Arc<Doing>) -> std::io::Result<()> {
        for (stream, link, peer) in &self.others {
            let to_say = Arc::clone(link);
            self.life.last_words(Box::new(move |text| {
                drop(to_say.try_send(&FromFirst::Failed(text.to_owned())));
            }));
            peer.heard();
            let (mut heard, link) = (Heard::new(stream.try_clone()?, Arc::clone(peer)), Arc::clone(link));
            let (first, peer, doing) = (Arc::clone(self), Arc::clone(peer), Arc::clone(doing));
            let name = format!("process-{}", peer.process);
            std::thread::Builder::new().name(name).spawn(move || {
                while !peer.has_ended() {
                    match read(&mut heard) {
                        Ok(said) => first.hear(said, &link, &peer, &doing),
                        Err(error) => {
                            return first.life.lose(peer.process, &why_unread(&error));
                        }
                    }
                }
            })?;
        }
        let (first, doing) = (Arc::clone(self), Arc::clone(doing));
        std::thread::Builder::new().name("beat".to_owned()).spawn(move || first.beat(&doing))?;
        Ok(())
    }

    fn hear(&self, said: ToFirst, link: &Link, peer: &Peer, doing: &Doing) {
        let process = peer.process;
        match said {
            ToFirst::Question(question) => {
                let answer = peer.busy(|| answer(question, process, doing));
                // NB: if it cannot be sent, nothing more can be read either.
                drop(link.send(&FromFirst::Answer(answer)));
            }
            ToFirst::LetGo(forgotten) => doing.table.take_back(process, &forgotten),
            ToFirst::RoundFinished(hop) => {
                let Shape { workers, processes, .. } = self.shape;
                let own = process * workers..(process + 1) * workers;
                own.for_each(|worker| doing.table.finish_round(worker, processes * workers, hop));
            }
            ToFirst::States(states) => peer.busy(|| doing.checkpoints.take_from(process, states, &doing.table)),
            ToFirst::Refused(boundary) => doing.checkpoints.refused_by_another(boundary),
            ToFirst::Beat { stop } => {
                if stop && !doing.stop.swap(true, Ordering::AcqRel) {
                    tracing::info!("process {process} was asked to stop: the run stops");
                }
            }
            ToFirst::Ended => peer.ended(),
            ToFirst::Failed(why) => self.life.lose(process, &why),
        }
    }

    /// Says that it is alive, and looks whether the others are.
    fn beat(&self, doing: &Doing) {
        while self.life.is_running() {
            let stop = doing.stop.load(Ordering::Acquire);
            // NB: in this order. Whoever fails says so before it stops.
            if let Some(why) = doing.failed() {
                return self.fail(&why);
            }
            let (flushes, closed) = doing.pulse.output();
            self.say_to_all(&FromFirst::Beat { stop, flushes, closed });
            if let Some((_, _, peer)) = self.others.iter().find(|(_, _, peer)| peer.is_silent()) {
                self.life.lose(peer.process, &Peer::why_silent());
            }
            std::thread::sleep(BEAT);
        }
    }

    fn say_to_all(&self, message: &FromFirst) {
        // NB: where nothing can be said, nothing is heard either, which is seen.
        self.others.iter().for_each(|(_, link, _)| drop(link.try_send(message)));
    }

    /// This process has failed.
    pub(super) fn fail(&self, why: &str) {
        self.say_to_all(&FromFirst::Failed(why.to_owned()));
    }

    /// All workers have ended; waits until those of the others have.
    pub(super) fn end(&self) {
        for (_, link, peer) in &self.others {
            drop(link.send(&FromFirst::Ended));
            while !peer.has_ended() && !peer.is_silent() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn answer(question: Question, process: usize, doing: &Doing) -> Answer {
    let table = &doing.table;
    let nobodys = || Answer::Failed("a number that means nothing".to_owned());
    match question {
        Question::NumbersOf(names) => Answer::Numbers(table.give_numbers(process, &names)),
        Question::Names(functions) => table.give_names(process, &functions).map_or_else(nobodys, Answer::Names),
        Question::PathsOf(stacks) => Answer::Paths(table.give_paths(process, &stacks)),
        Question::Nodes(paths) => table.give_nodes(process, &paths).map_or_else(nobodys, Answer::Nodes),
        Question::Decision(line) => {
            let logged = line_of(&line)
                .and_then(|decision| doing.decisions.append(&decision).map_err(|error| error.to_string()));
            logged.map_or_else(Answer::Failed, |()| Answer::Logged)
        }
    }
}
