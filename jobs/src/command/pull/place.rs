//! Where what is pulled goes: into a folder, or onto a topic.

use std::path::PathBuf;

use fleetdiff_connectors::files::FleetRecorder;
use fleetdiff_connectors::kafka::publish::{Outgoing, Publisher};
use fleetdiff_formats::Format;

use super::PullArgs;
use super::pods::Profile;
use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::publisher;

pub(super) enum Place {
    Folder(FleetRecorder, PathBuf),
    Topic(Box<Publisher>, Box<Configuration>),
}

impl Place {
    /// The place that the command line names.
    pub(super) fn of(args: &PullArgs) -> Result<Self, Failure> {
        let to_topic = publisher::is_named(args.config.as_deref(), &args.flags);
        match &args.to {
            Some(_) if to_topic => {
                Err(Failure::usage("profiles go to one place", "give either --to or --brokers and --topic"))
            }
            Some(folder) => {
                let recorder = FleetRecorder::open(folder).map_err(Failure::of_fleet)?;
                Ok(Self::Folder(recorder, folder.clone()))
            }
            None if to_topic => {
                let configuration =
                    Configuration::load(args.config.as_deref(), &args.flags).map_err(Failure::of_configuration)?;
                if configuration.kafka.format != Format::Pprof {
                    let refusal =
                        format!("profiles are kept as they come, and not as {}", configuration.kafka.format.name());
                    let hint = "leave out --format, or pull into a folder and give that to fleetdiff publish";
                    return Err(Failure::usage(refusal, hint));
                }
                let publisher = publisher::open(&configuration, args.onto)?;
                Ok(Self::Topic(Box::new(publisher), Box::new(configuration)))
            }
            None => Err(Failure::usage("nowhere to put profiles", "give --to DIR, or --brokers and --topic")),
        }
    }

    /// Puts a profile there.
    pub(super) fn put(&mut self, Profile { labels, bytes }: Profile) -> Result<(), Failure> {
        match self {
            Self::Folder(recorder, _) => recorder.add(&labels, Format::Pprof, &bytes).map_err(Failure::of_fleet),
            Self::Topic(publisher, _) => {
                publisher.publish(Outgoing::File { labels, bytes }).map_err(Failure::of_broker)
            }
        }
    }

    /// Waits until all of it is there, and says where that is.
    pub(super) fn finish(self, args: &PullArgs) -> Result<String, Failure> {
        match self {
            Self::Folder(_, folder) => Ok(format!("the fleet is in {}", folder.display())),
            Self::Topic(publisher, configuration) => {
                let acknowledged = publisher.finish(|_| {}).map_err(Failure::of_broker)?;
                publisher::summary(&configuration, args.onto, acknowledged)
            }
        }
    }
}
