package main

import (
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// A dashboard is what Grafana's schema takes, with the schemas of its panels and queries.
func checkDashboard(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	// Only what the dashboard uses: all panels and data sources of Grafana take Go long to compile.
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(prometheus.VariantConfig())
	var read dashboard.Dashboard
	for _, err := range []error{read.UnmarshalJSONStrict(text), read.Validate()} {
		// The library also gives lists of errors that are empty.
		if err != nil && err.Error() != "" {
			return err
		}
	}
	return nil
}
