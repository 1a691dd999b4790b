package main

import (
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// A dashboard is what Grafana's schema takes, with the schemas of its panels and queries.
func checkDashboard(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	plugins.RegisterDefaultPlugins()
	var read dashboard.Dashboard
	for _, err := range []error{read.UnmarshalJSONStrict(text), read.Validate()} {
		// The library also gives lists of errors that are empty.
		if err != nil && err.Error() != "" {
			return err
		}
	}
	return nil
}
