package main

import (
	"errors"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

// The name and the namespace of a release, where nobody says otherwise.
const release, namespace = "fleetdiff", "fleetdiff"

// The values of a file, if one is named.
func values(args []string) (map[string]any, error) {
	if len(args) < 2 {
		return map[string]any{}, nil
	}
	return common.ReadValuesFile(args[1])
}

func lintChart(args []string) error {
	values, err := values(args)
	if err != nil {
		return err
	}
	linter := lint.RunAll(args[0], values, namespace)
	var wrong []error
	for _, message := range linter.Messages {
		if message.Severity >= support.WarningSev {
			wrong = append(wrong, fmt.Errorf("%s", message.Error()))
		}
	}
	return errors.Join(wrong...)
}

func template(args []string) (string, error) {
	values, err := values(args)
	if err != nil {
		return "", err
	}
	chart, err := loader.Load(args[0])
	if err != nil {
		return "", err
	}
	options := common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, options, common.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	_, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, manifest := range manifests {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", manifest.Name, strings.TrimSpace(manifest.Content))
	}
	return text.String(), nil
}
