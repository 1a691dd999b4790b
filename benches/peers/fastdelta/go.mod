// What benches/benches/delta.rs measures beside; it reads the version here.
module fleetdiff.invalid/benches/peers/fastdelta

go 1.26

require github.com/DataDog/dd-trace-go/v2 v2.12.0
