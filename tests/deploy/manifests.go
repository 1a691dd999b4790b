package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Every document is decoded into the type of its API, strictly: a field that the API does not know, a field that is there
// twice and a value of another type are errors.
func checkManifests(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoring.AddToScheme} {
		if err := add(types); err != nil {
			return err
		}
	}
	decoder := serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
	documents := yamlutil.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer documents.Close()
	buffer := make([]byte, len(text)+1)
	var objects []runtime.Object
	var wrong []error
	for {
		length, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		document := buffer[:length]
		if isEmpty(document) {
			continue
		}
		object, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%v: %w", kind, err))
			continue
		}
		objects = append(objects, object)
	}
	wrong = append(wrong, required(objects)...)
	wrong = append(wrong, references(objects)...)
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	for _, object := range objects {
		fmt.Println(object.GetObjectKind().GroupVersionKind().Kind)
	}
	return nil
}

func isEmpty(document []byte) bool {
	asJSON, err := yaml.YAMLToJSON(document)
	return err == nil && (string(asJSON) == "null" || !json.Valid(asJSON))
}
