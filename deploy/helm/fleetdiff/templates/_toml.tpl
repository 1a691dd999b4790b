{{/*
A table as TOML: its values, then its tables, then its lists of tables. NB: not toToml, which writes whole numbers as 3.0.
*/}}
{{- define "fleetdiff.toml" }}
{{- $path := .path }}
{{- range $key, $value := .table }}
{{- if not (or (kindIs "map" $value) (and $value (kindIs "slice" $value) (kindIs "map" (first $value)))) }}
{{ include "fleetdiff.key" $key }} = {{ toRawJson $value }}
{{- end }}
{{- end }}
{{- range $key, $value := .table }}
{{- $name := include "fleetdiff.key" $key | printf "%s%s" $path }}
{{- if kindIs "map" $value }}
[{{ $name }}]
{{- include "fleetdiff.toml" (dict "path" (printf "%s." $name) "table" $value) }}
{{- else if and $value (kindIs "slice" $value) (kindIs "map" (first $value)) }}
{{- range $value }}
[[{{ $name }}]]
{{- include "fleetdiff.toml" (dict "path" (printf "%s." $name) "table" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "fleetdiff.key" -}}
{{ ternary . (toRawJson .) (regexMatch "^[A-Za-z0-9_-]+$" .) }}
{{- end }}
