//! What holds for every format.

use fleetdiff_formats::names::Rewrites;
use fleetdiff_formats::{Format, Labels, Options, compression};
use fleetdiff_schemas::profile::{ProfileType, Samples, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::examples::good;
use super::fixtures::{kind_of, labels, options, part, window};

fn total(format: Format, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Result<u64, Rejection> {
    part(format.decoder(&options(format)).as_mut(), bytes, labels).map(|profile| profile.total())
}

/// Formats whose records do not say whose they are.
fn labelled() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| ![Format::Delta, Format::Otlp].contains(format))
}

#[test]
fn compressed_or_not_a_record_is_the_same() {
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    for format in Format::ALL {
        for (bytes, samples) in good(format) {
            let plain = compression::decompress(&bytes, 1 << 20).unwrap().into_owned();
            for packed in [plain.clone(), compression::gzip(&plain), zstd(&plain)] {
                assert_eq!(total(format, &packed, &Ok(labels(kind_of(format)))), Ok(samples), "{}", format.name());
            }
            let gzip = compression::gzip(&plain);
            let cut = total(format, &gzip[..gzip.len() - 5], &Ok(labels(kind_of(format))));
            assert_eq!(cut.unwrap_err().reason, Reason::Truncated, "{}", format.name());
        }
    }
}

#[test]
fn nothing_at_all_is_empty_or_truncated() {
    for format in Format::ALL {
        for nothing in [&b""[..], b"\n \n"] {
            let reason = total(format, nothing, &Ok(labels(kind_of(format)))).unwrap_err().reason;
            let known = [Reason::Empty, Reason::Truncated, Reason::Malformed];
            assert!(known.contains(&reason), "{} {reason:?}", format.name());
        }
    }
}

#[test]
fn a_decoder_gives_the_same_again() {
    for format in Format::ALL {
        let mut decoder = format.decoder(&options(format));
        for (bytes, _) in good(format) {
            let labels = Ok(labels(kind_of(format)));
            let first = decoder.decode(&bytes, &labels);
            assert_eq!(decoder.decode(&bytes, &labels), first, "{}", format.name());
        }
    }
}

#[test]
fn formats_without_a_time_need_labels_that_say_when() {
    for format in [
        Format::Folded,
        Format::PerfScript,
        Format::PerfData,
        Format::Speedscope,
        Format::Cpuprofile,
        Format::ChromeTrace,
        Format::Heapprofile,
        Format::Stackprof,
        Format::Gecko,
    ] {
        let (bytes, samples) = good(format).remove(0);
        let timeless = Labels { window: None, ..labels(kind_of(format)) };
        let fault = total(format, &bytes, &Ok(timeless.clone())).unwrap_err();
        assert_eq!(fault.reason, Reason::Malformed);
        assert!(fault.detail.contains("when it was taken"), "{fault:?}");
        let sent = Labels { sent_at: Some(window().start), ..timeless };
        assert_eq!(total(format, &bytes, &Ok(sent)), Ok(samples));
    }
}

#[test]
fn levels_are_refused_and_sums_since_the_start_are_not() {
    for format in labelled() {
        let (bytes, samples) = good(format).remove(0);
        let of = |temporality| total(format, &bytes, &Ok(Labels { temporality, ..labels(kind_of(format)) }));
        if kind_of(format) == ProfileType::Heap {
            assert_eq!(of(Temporality::Gauge), Ok(samples), "memory in use is a level");
        } else {
            let fault = of(Temporality::Gauge).unwrap_err();
            let expected = (Reason::UnsupportedType, Some(window().end));
            assert_eq!((fault.reason, fault.at), expected, "a level is of its moment");
        }
        assert_eq!(of(Temporality::Cumulative), Ok(samples), "{}", format.name());
    }
}

#[test]
fn without_an_owner_the_samples_that_are_lost_are_known() {
    for format in labelled() {
        let profile_type = Some(kind_of(format));
        let nobody = Rejection { profile_type, ..Rejection::new(Reason::MissingIdentity, "no pod") };
        let (bytes, samples) = good(format).remove(0);
        let fault = total(format, &bytes, &Err(nobody)).unwrap_err();
        assert_eq!((fault.reason, fault.samples), (Reason::MissingIdentity, samples), "{}", format.name());
    }
}

/// Names go through one place: a rewrite reaches those of every format that holds stacks.
#[test]
fn rewrites_reach_every_format() {
    let rewrites = Rewrites::parse(&["^(.)[^(]* => $1"]).unwrap();
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Delta) {
        let mut decoder = format.decoder(&Options { rewrites: rewrites.clone(), ..options(format) });
        let (bytes, samples) = good(format).remove(0);
        let profile = part(decoder.as_mut(), &bytes, &Ok(labels(kind_of(format)))).unwrap();
        assert_eq!(profile.total(), samples);
        let mut names = profile.names.to_vec();
        assert!(
            names.iter().all(|name| **name == *"_unsymbolised" || name.split('(').next().unwrap().len() <= 1),
            "{names:?}"
        );
        names.sort();
        names.dedup();
        assert_eq!(names.len(), profile.names.len(), "{}: a name stands twice", format.name());
        assert!(matches!(profile.samples, Samples::Stacks(_)));
    }
}

/// A delta holds counts by function: two functions that became one could not be added up, so its names stay.
#[test]
fn names_of_a_delta_stay() {
    let rewrites = Rewrites::parse(&["main => other"]).unwrap();
    let mut decoder = Format::Delta.decoder(&Options { rewrites, ..Options::default() });
    let profile = part(decoder.as_mut(), &good(Format::Delta)[0].0, &Ok(labels(ProfileType::Cpu))).unwrap();
    assert!(profile.names.iter().any(|name| **name == *"main"));
}
