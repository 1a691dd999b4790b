//! The functions at places of objects, object by object, so that the symbols of one are held at a time.

use std::rc::Rc;

use fleetdiff_schemas::rejected::Rejection;

use super::machine::{Kind, Object, Objects};
use super::recording::Recording;
use super::{ByPlace, elf, files, jitted, kernel};
use crate::budget::Budget;

/// What a name is counted as, beside its text.
const NAME: usize = 64;

/// What was found: the names of objects, and of functions by their places.
pub(super) struct Found {
    objects: Vec<Rc<str>>,
    symbols: ByPlace<Rc<str>>,
}

impl Found {
    pub(super) fn symbol(&self, place: (u32, u64)) -> Option<&str> {
        self.symbols.get(&place).map(AsRef::as_ref)
    }

    /// The object's name as perf prints it.
    pub(super) fn object(&self, place: u32) -> Option<&str> {
        usize::try_from(place).ok().and_then(|place| self.objects.get(place)).map(AsRef::as_ref)
    }
}

/// Finds the functions at these places.
///
/// # Errors
/// `too_large`; that a file cannot be read is none.
pub(super) fn find(
    recording: &Recording<'_>,
    objects: &Objects,
    places: ByPlace<()>,
    budget: &Budget,
) -> Result<Found, Rejection> {
    let mut places: Vec<(u32, u64)> = places.into_keys().collect();
    places.sort_unstable();
    let mut symbols = ByPlace::default();
    let mut add = |place: (u32, u64), name: String| {
        budget.take(NAME + name.len())?;
        symbols.insert(place, Rc::from(name));
        Ok::<(), Rejection>(())
    };
    let mut in_kernel = Vec::new();
    for of_object in places.chunk_by(|(one, _), (other, _)| one == other) {
        let place = of_object.first().and_then(|(object, _)| usize::try_from(*object).ok());
        let Some(object) = place.and_then(|place| objects.list.get(place)) else { continue };
        if object.kind == Kind::Kernel {
            in_kernel.extend_from_slice(of_object);
            continue;
        }
        let offsets: Vec<u64> = of_object.iter().map(|(_, offset)| *offset).collect();
        for (place, name) in of_object.iter().zip(of_process(recording, object, &offsets)) {
            name.map_or(Ok(()), |name| add(*place, name))?;
        }
    }
    if !in_kernel.is_empty() {
        let addresses: Vec<u64> = in_kernel.iter().map(|(_, address)| *address).collect();
        for (place, name) in in_kernel.iter().zip(kernel::find(recording, objects, &addresses)) {
            name.map_or(Ok(()), |name| add(*place, name))?;
        }
    }
    Ok(Found { objects: objects.list.iter().map(|object| Rc::clone(&object.name)).collect(), symbols })
}

/// The functions at offsets of what a process has mapped.
fn of_process(recording: &Recording<'_>, object: &Object, offsets: &[u64]) -> Vec<Option<String>> {
    let recorded = || recording.build_ids.iter().find(|(path, _)| *path == object.name.as_bytes());
    let build_id = object.build_id.as_deref().or_else(|| recorded().map(|(_, id)| id.as_slice()));
    let table = match object.kind {
        Kind::File => elf::of_file(&object.name, build_id),
        Kind::Vdso => elf::of_vdso(build_id),
        Kind::Jitted => files::jitted(&object.name).map(|text| jitted::table(&text)),
        Kind::Kernel | Kind::Data => None,
    };
    let find = |offset: &u64| table.as_ref().and_then(|table| table.find(*offset));
    offsets.iter().map(find).collect()
}
