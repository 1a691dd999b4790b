package main

import (
	"fmt"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// What the types of an API do not say: names are there, and labels select.
func required(objects []runtime.Object) []error {
	var wrong []error
	seen := map[string]bool{}
	for _, object := range objects {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		named, ok := object.(meta.Object)
		if !ok || named.GetName() == "" {
			wrong = append(wrong, fmt.Errorf("%s has no name", kind))
			continue
		}
		name := kind + " " + named.GetName()
		if seen[name] {
			wrong = append(wrong, fmt.Errorf("%s is there twice", name))
		}
		seen[name] = true
	}
	return wrong
}

// Everything that an object refers to is there too.
func references(objects []runtime.Object) []error {
	var wrong []error
	names := map[string]bool{}
	pods := labels.Set{}
	ports := map[string]bool{}
	for _, object := range objects {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		if named, ok := object.(meta.Object); ok {
			names[kind+" "+named.GetName()] = true
		}
		if set, ok := object.(*apps.StatefulSet); ok {
			pods = set.Spec.Template.Labels
			for _, port := range set.Spec.Template.Spec.Containers[0].Ports {
				ports[port.Name] = true
			}
		}
	}
	need := func(holds bool, format string, args ...any) {
		if !holds {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	for _, object := range objects {
		switch object := object.(type) {
		case *apps.StatefulSet:
			selector, err := meta.LabelSelectorAsSelector(object.Spec.Selector)
			need(err == nil && !selector.Empty() && selector.Matches(pods), "the StatefulSet does not select its own pods")
			need(names["Service "+object.Spec.ServiceName], "no Service %s", object.Spec.ServiceName)
			referencesOfPod(object, names, ports, need)
		case *core.Service:
			need(len(object.Spec.Selector) > 0 && labels.SelectorFromSet(object.Spec.Selector).Matches(pods), "the Service selects no pod")
			for _, port := range object.Spec.Ports {
				need(ports[port.TargetPort.String()], "no port %s", port.TargetPort.String())
			}
		}
	}
	return wrong
}

func referencesOfPod(set *apps.StatefulSet, names, ports map[string]bool, need func(bool, string, ...any)) {
	spec := set.Spec.Template.Spec
	account := spec.ServiceAccountName
	need(account == "" || names["ServiceAccount "+account], "no ServiceAccount %s", account)
	volumes := map[string]bool{}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		volumes[claim.Name] = true
	}
	for _, volume := range spec.Volumes {
		volumes[volume.Name] = true
		if volume.ConfigMap != nil {
			need(names["ConfigMap "+volume.ConfigMap.Name], "no ConfigMap %s", volume.ConfigMap.Name)
		}
	}
	for _, container := range spec.Containers {
		for _, mount := range container.VolumeMounts {
			need(volumes[mount.Name], "no volume %s", mount.Name)
		}
		for _, source := range container.EnvFrom {
			secret := source.SecretRef
			isThere := secret == nil || names["Secret "+secret.Name] || (secret.Optional != nil && *secret.Optional)
			need(isThere, "a Secret is neither there nor optional")
		}
		for name, probe := range map[string]*core.Probe{
			"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe,
		} {
			need(probe != nil && probe.HTTPGet != nil && ports[probe.HTTPGet.Port.String()], "the %s probe asks no port", name)
		}
	}
}
