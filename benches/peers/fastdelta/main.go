// Program fastdelta subtracts pprof files by the package of that name in dd-trace-go, for benches/benches/delta.rs.
//
// That package is internal, so the bench builds this file within a copy of its module.
//
//	fastdelta BEFORE AFTER COLUMN/UNIT... once WAY    one pass, then its peak memory in KiB; "read" only reads the files
//	fastdelta BEFORE AFTER COLUMN/UNIT... clock       nanoseconds of one pass for each WAY on a line of stdin
//	fastdelta BEFORE AFTER COLUMN/UNIT... write       the delta, to stdout
//
// A WAY is "plain" or "gzip" (what is written is compressed as the profiler of dd-trace-go does it), each of two
// profiles from nothing; "onward" goes on from the profile before, which is as uncompressed as "plain".
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/DataDog/dd-trace-go/v2/profiler/internal/fastdelta"
	"github.com/DataDog/dd-trace-go/v2/profiler/internal/pprofutils"
)

// Buffers live from pass to pass, as they do in that profiler.
type peer struct {
	before, after []byte
	columns       []pprofutils.ValueType
	out           bytes.Buffer
	packed        *gzip.Writer
	onward        *fastdelta.DeltaComputer
}

func main() {
	if len(os.Args) < 5 {
		fail(fmt.Errorf("BEFORE AFTER COLUMN/UNIT... once WAY, clock or write"))
	}
	before, err := os.ReadFile(os.Args[1])
	check(err)
	after, err := os.ReadFile(os.Args[2])
	check(err)
	packed, err := gzip.NewWriterLevel(io.Discard, 6)
	check(err)
	p := &peer{before: before, after: after, packed: packed}
	rest := os.Args[3:]
	for len(rest) > 0 && strings.Contains(rest[0], "/") {
		kind, unit, _ := strings.Cut(rest[0], "/")
		p.columns = append(p.columns, pprofutils.ValueType{Type: kind, Unit: unit})
		rest = rest[1:]
	}
	switch {
	case len(rest) == 2 && rest[0] == "once":
		p.once(rest[1])
	case len(rest) == 1 && rest[0] == "clock":
		p.clock()
	case len(rest) == 1 && rest[0] == "write":
		p.pass("plain")
		_, err := os.Stdout.Write(p.out.Bytes())
		check(err)
	default:
		fail(fmt.Errorf("unknown words %q", rest))
	}
}

func (p *peer) once(way string) {
	if way != "read" {
		p.pass(way)
	}
	status, err := os.ReadFile("/proc/self/status")
	check(err)
	for _, line := range strings.Split(string(status), "\n") {
		if peak, found := strings.CutPrefix(line, "VmHWM:"); found {
			fmt.Println(strings.TrimSpace(strings.TrimSuffix(peak, "kB")))
		}
	}
}

func (p *peer) clock() {
	ways := bufio.NewScanner(os.Stdin)
	for ways.Scan() {
		if way := ways.Text(); way == "onward" && p.onward == nil {
			p.onward = fastdelta.NewDeltaComputer(p.columns...)
			check(p.onward.Delta(p.before, io.Discard))
		}
		start := time.Now()
		p.pass(ways.Text())
		fmt.Println(time.Since(start).Nanoseconds())
	}
	check(ways.Err())
}

func (p *peer) pass(way string) {
	p.out.Reset()
	switch way {
	case "plain":
		p.fromNothing(&p.out)
	case "gzip":
		p.packed.Reset(&p.out)
		p.fromNothing(p.packed)
		check(p.packed.Close())
	case "onward":
		check(p.onward.Delta(p.after, &p.out))
	default:
		fail(fmt.Errorf("unknown way %q", way))
	}
}

// The first profile is taken in only, what is written for it goes nowhere.
func (p *peer) fromNothing(out io.Writer) {
	computer := fastdelta.NewDeltaComputer(p.columns...)
	check(computer.Delta(p.before, io.Discard))
	check(computer.Delta(p.after, out))
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "fastdelta:", err)
	os.Exit(1)
}
