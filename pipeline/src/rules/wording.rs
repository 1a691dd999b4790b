//! What functions do with what profiles of a type count: the verbs of every sentence about it, in one place.

use fleetdiff_schemas::profile::ProfileType;

/// The words for profiles of one type.
///
/// ```
/// use fleetdiff_pipeline::rules::wording::Wording;
/// use fleetdiff_schemas::profile::ProfileType;
///
/// assert_eq!(Wording::of(ProfileType::Cpu).does, "costs");
/// assert_eq!(Wording::of(ProfileType::LiveHeap).does, "holds");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wording {
    /// What a function does: `costs` 10 % more.
    pub does: &'static str,
    /// What there is where it does more: `more expensive` in tv.
    pub more: &'static str,
    /// What there is where it does less: `cheaper` in tv.
    pub less: &'static str,
    /// What a request does of all functions together: `cost` per request. None of a level, which no request made.
    pub of_request: Option<&'static str>,
    /// What a change makes every function do.
    makes: &'static str,
}

impl Wording {
    /// The words for a type of profile.
    pub fn of(profile_type: ProfileType) -> Self {
        let of =
            |does, [more, less]: [&'static str; 2], of_request, makes| Self { does, more, less, of_request, makes };
        let longer = ["longer waits", "shorter waits"];
        match profile_type {
            ProfileType::Cpu => of("costs", ["more expensive", "cheaper"], Some("cost"), "more expensive"),
            ProfileType::Heap => {
                of("allocates", ["more is allocated", "less is allocated"], Some("allocation"), "allocate more")
            }
            ProfileType::LiveHeap => of("holds", ["more is held", "less is held"], None, "hold more"),
            ProfileType::OffCpu | ProfileType::Wall | ProfileType::Block => {
                of("waits", longer, Some("waiting"), "wait longer")
            }
            // Attributed to the holder of the lock.
            ProfileType::Mutex => of("keeps others waiting", longer, Some("waiting"), "keep others waiting longer"),
        }
    }

    /// What nobody can see where requests are not counted; nothing of a level, to which requests do not belong.
    ///
    /// ```
    /// use fleetdiff_pipeline::rules::wording::Wording;
    /// use fleetdiff_schemas::profile::ProfileType;
    ///
    /// let unseen = Wording::of(ProfileType::Heap).unseen().unwrap();
    /// assert_eq!(unseen, "a change that makes every function allocate more by the same factor cannot be detected");
    /// assert_eq!(Wording::of(ProfileType::LiveHeap).unseen(), None);
    /// ```
    pub fn unseen(self) -> Option<String> {
        self.of_request?;
        Some(format!("a change that makes every function {} by the same factor cannot be detected", self.makes))
    }
}
