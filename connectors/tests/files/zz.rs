#[test]
fn zz_odd() {
    use fleetdiff_connectors::formats::*;
    use fleetdiff_schemas::profile::*;
    for dir in ["odd", "pairs", "sequence", "godeltaprof"] {
        let mut files: Vec<_> = std::fs::read_dir(format!("/work/shared/data/formats/pprof/{dir}")).unwrap().map(|f| f.unwrap().path()).collect();
        files.sort();
        for f in files {
            let bytes = std::fs::read(&f).unwrap();
            print!("{dir}/{}: ", f.file_name().unwrap().to_string_lossy());
            for (kind, name) in ProfileType::ALL {
                let labels = Labels { identity: super::reading::profile("a", 0).identity, profile_type: kind, temporality: Temporality::Delta, window: None, sent_at: None, requests: None, requests_window: None, unit: None };
                let part = Format::Pprof.decoder(&Options::default()).decode(&bytes, &Ok(labels)).remove(0);
                match part {
                    Ok(p) => { let Samples::Stacks(s) = &p.samples else { panic!() };
                        let uns = p.names.iter().position(|n| &**n == UNSYMBOLISED);
                        print!("[{name} ok: {} samples {} stacks {} names, window {}+{} unsym {:?} maxdepth {:?}] ", p.total(), s.len(), p.names.len(), p.window.start.0 / 1_000_000_000, (p.window.end.0-p.window.start.0)/1_000_000, uns, s.iter().map(|s| s.frames.len()).max()) },
                    Err(e) => if matches!(kind, ProfileType::Cpu|ProfileType::Heap|ProfileType::Wall) { print!("[{name} {}: {}] ", e.reason.name(), e.detail) },
                }
            }
            println!();
        }
    }
    for f in ["redis.folded", "go-stacks-collapsed.txt", "perf-java-stacks-01-collapsed-all.txt"] {
        let bytes = std::fs::read(format!("/work/shared/data/formats/folded/{f}")).unwrap();
        let labels = Labels { identity: super::reading::profile("a", 0).identity, profile_type: ProfileType::Cpu, temporality: Temporality::Delta, window: Some(super::reading::profile("a", 0).window), sent_at: None, requests: None, requests_window: None, unit: None };
        let part = Format::Folded.decoder(&Options::default()).decode(&bytes, &Ok(labels)).remove(0);
        match part { Ok(p) => { let Samples::Stacks(s) = &p.samples else { panic!() }; println!("{f} {} {}", p.total(), s.len()) }, Err(e) => println!("{f} {e:?}") }
    }
}
