//! The fleet in one file: columns of records, one after the other, little-endian, in the order of hops and pods.
//!
//! ```text
//! 6 x u64   "fdpeers1", records, cells, functions, hops of the window, measured hops
//! u32       function, of every record
//! u16       count
//! u16       hop, from 0
//! u16       pod
//! u16       cell
//! u8        head: 1, base: 0
//! ```

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::workload::{Pod, Workload};

const MAGIC: u64 = u64::from_le_bytes(*b"fdpeers1");

/// Samples of one function in one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The pod's cell.
    pub cell: u16,
    /// Whether the pod runs the head build.
    pub head: bool,
    /// The function.
    pub function: u32,
    /// Its samples.
    pub count: u16,
}

/// The records of a fleet.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Number of cells.
    pub cells: usize,
    /// Number of functions.
    pub functions: usize,
    /// Hops in the window.
    pub window: usize,
    /// Hops after the first full window.
    pub measured: usize,
    /// By hop, the records of each pod.
    hops: Vec<Vec<(u16, Vec<Arrival>)>>,
}

impl Recorded {
    /// Makes the profiles of a workload, on this number of threads.
    #[must_use]
    pub fn of(workload: &Workload, threads: usize) -> Self {
        let hops: Vec<u64> = (0..workload.window + workload.measured).collect();
        let each = hops.len().div_ceil(threads.max(1)).max(1);
        let hops = std::thread::scope(|scope| {
            let parts: Vec<_> = hops
                .chunks(each)
                .map(|part| scope.spawn(move || part.iter().map(|&hop| profiles(workload, hop)).collect::<Vec<_>>()))
                .collect();
            parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
        });
        let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            cells: workload.cells(),
            functions: index(u64::from(workload.size.functions)),
            window: index(workload.window),
            measured: index(workload.measured),
            hops,
        }
    }

    /// The records of a hop.
    pub fn arrivals(&self, hop: usize) -> impl Iterator<Item = &Arrival> {
        self.hops[hop].iter().flat_map(|(_, records)| records)
    }

    /// Number of records.
    #[must_use]
    pub fn records(&self) -> usize {
        self.hops.iter().flatten().map(|(_, records)| records.len()).sum()
    }

    /// Samples of the measured hops.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let measured = self.window..self.window + self.measured;
        measured.flat_map(|hop| self.arrivals(hop)).map(|record| u64::from(record.count)).sum()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let header = [self.records(), self.cells, self.functions, self.window, self.measured].map(wide);
        for number in std::iter::once(MAGIC).chain(header) {
            file.write_all(&number.to_le_bytes())?;
        }
        self.column(&mut file, |_, _, record| record.function.to_le_bytes())?;
        self.column(&mut file, |_, _, record| record.count.to_le_bytes())?;
        self.column(&mut file, |hop, _, _| hop.to_le_bytes())?;
        self.column(&mut file, |_, pod, _| pod.to_le_bytes())?;
        self.column(&mut file, |_, _, record| record.cell.to_le_bytes())?;
        self.column(&mut file, |_, _, record| [u8::from(record.head)])?;
        file.flush()
    }

    /// One column, of hop, pod and record.
    fn column<const N: usize>(
        &self,
        file: &mut impl Write,
        value: impl Fn(u16, u16, &Arrival) -> [u8; N],
    ) -> std::io::Result<()> {
        for (hop, profiles) in (0..).zip(&self.hops) {
            for (pod, records) in profiles {
                for record in records {
                    file.write_all(&value(hop, *pod, record))?;
                }
            }
        }
        Ok(())
    }
}

/// The profiles of a hop, by pod.
fn profiles(workload: &Workload, hop: u64) -> Vec<(u16, Vec<Arrival>)> {
    let of = |pod: &Pod| {
        let arrival = |(function, count)| Arrival {
            cell: u16::try_from(pod.cell).unwrap_or(u16::MAX),
            head: pod.head,
            function,
            count: u16::try_from(count).unwrap_or(u16::MAX),
        };
        workload.samples(pod, hop).into_iter().map(arrival).collect()
    };
    (0..).zip(&workload.pods).map(|(number, pod)| (number, of(pod))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{MEDIUM, Mix, Size};

    #[test]
    fn a_file_has_its_columns_and_all_samples() {
        let size = Size { name: "tiny", pods: 84, functions: 50, samples: 100, ..MEDIUM };
        let recorded = Recorded::of(&Workload::new(size, Mix::CanaryInEveryCell, 3, 2), 2);
        assert_eq!(recorded.samples(), 2 * 84 * 100);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.bin");
        recorded.write(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(&bytes[..8], b"fdpeers1");
        assert_eq!(bytes.len(), 48 + 13 * recorded.records());
        assert!(bytes.ends_with(&[1]), "the last pod runs the head");
    }
}
