// Checks the files of the folder deploy with the libraries of the programs that read them: Helm, Kubernetes, the operator
// of Prometheus, Grafana. Nothing is asked of a network or a cluster.
//
//	check lint CHART [VALUES]        as helm lint --strict
//	check template CHART [VALUES]    as helm template; prints the manifests
//	check manifests FILE             each document is what its kind's API takes, and what it refers to is there
//	check dashboard FILE             what Grafana's schema of dashboards takes
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("use: check lint|template|manifests|dashboard FILE")
	}
	command, rest := args[0], args[1:]
	switch command {
	case "lint":
		return lintChart(rest)
	case "template":
		text, err := template(rest)
		fmt.Print(text)
		return err
	case "manifests":
		return checkManifests(rest[0])
	case "dashboard":
		return checkDashboard(rest[0])
	}
	return fmt.Errorf("unknown command %q", command)
}
