package deploy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// strictly decodes YAML; a key that the type does not have, or has twice, is an error.
func strictly[T any](t *testing.T, text []byte) *T {
	t.Helper()
	into := new(T)
	if err := decode(text, into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return into
}

func decode(text []byte, into any) error {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	wrong, err := json.UnmarshalStrict(asJSON, into)
	return errors.Join(append(wrong, err)...)
}

// configured checks a configuration where every variable is set.
func configured(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("/etc/codemode-bridge/config.json", []byte(text), func(name string) (string, bool) {
		if name == "HOME" {
			return "/var/lib/codemode-bridge", true
		}
		sum := sha256.Sum256([]byte(name))
		return hex.EncodeToString(sum[:]), true
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

var variable = regexp.MustCompile(`\$\{([A-Z_]+)\}`)

// names are the variables that a text refers to.
func names(text string) (all []string) {
	for _, found := range variable.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// manifests are the documents of the example, by kind.
type manifests struct {
	*core.Namespace
	*core.ServiceAccount
	*core.Secret
	*core.ConfigMap
	*core.Service
	*apps.Deployment
	*policy.PodDisruptionBudget
	*networking.NetworkPolicy
}

func kubernetes(t *testing.T, text []byte) (m manifests) {
	t.Helper()
	for _, one := range bytes.Split(text, []byte("\n---\n")) {
		var is meta.TypeMeta
		if err := yaml.Unmarshal(one, &is); err != nil {
			t.Fatal(err)
		}
		switch is.APIVersion + " " + is.Kind {
		case "v1 Namespace":
			m.Namespace = strictly[core.Namespace](t, one)
		case "v1 ServiceAccount":
			m.ServiceAccount = strictly[core.ServiceAccount](t, one)
		case "v1 Secret":
			m.Secret = strictly[core.Secret](t, one)
		case "v1 ConfigMap":
			m.ConfigMap = strictly[core.ConfigMap](t, one)
		case "v1 Service":
			m.Service = strictly[core.Service](t, one)
		case "apps/v1 Deployment":
			m.Deployment = strictly[apps.Deployment](t, one)
		case "policy/v1 PodDisruptionBudget":
			m.PodDisruptionBudget = strictly[policy.PodDisruptionBudget](t, one)
		case "networking.k8s.io/v1 NetworkPolicy":
			m.NetworkPolicy = strictly[networking.NetworkPolicy](t, one)
		default:
			t.Fatalf("there is a %s %s", is.APIVersion, is.Kind)
		}
	}
	return m
}

func TestKubernetes(t *testing.T) {
	m := kubernetes(t, read(t, "kubernetes/codemode-bridge.yaml"))
	for _, one := range []meta.ObjectMeta{m.ServiceAccount.ObjectMeta, m.Secret.ObjectMeta, m.ConfigMap.ObjectMeta, m.Service.ObjectMeta, m.Deployment.ObjectMeta, m.PodDisruptionBudget.ObjectMeta, m.NetworkPolicy.ObjectMeta} {
		if one.Namespace != m.Namespace.Name {
			t.Errorf("%s is in %q", one.Name, one.Namespace)
		}
	}
	pod := m.Deployment.Spec.Template
	for what, selects := range map[string]map[string]string{"service": m.Service.Spec.Selector, "deployment": m.Deployment.Spec.Selector.MatchLabels,
		"budget": m.PodDisruptionBudget.Spec.Selector.MatchLabels, "network policy": m.NetworkPolicy.Spec.PodSelector.MatchLabels} {
		for key, value := range selects {
			if pod.Labels[key] != value || len(selects) == 0 {
				t.Errorf("the %s selects %v, and the pods have %v", what, selects, pod.Labels)
			}
		}
	}
	c := pod.Spec.Containers[0]
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, to := range []string{m.Service.Spec.Ports[0].TargetPort.StrVal, c.ReadinessProbe.HTTPGet.Port.StrVal, c.LivenessProbe.HTTPGet.Port.StrVal, m.NetworkPolicy.Spec.Ingress[0].Ports[0].Port.StrVal, m.NetworkPolicy.Spec.Ingress[1].Ports[0].Port.StrVal} {
		if ports[to] == 0 {
			t.Errorf("there is no port %q", to)
		}
	}
	var volumes, mounts []string
	for _, v := range pod.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	paths := map[string]bool{}
	for _, v := range c.VolumeMounts {
		mounts, paths[v.MountPath] = append(mounts, v.Name), true
	}
	if slices.Sort(volumes); !slices.Equal(volumes, slices.Sorted(slices.Values(mounts))) {
		t.Errorf("it has the volumes %v and mounts %v", volumes, mounts)
	}
	// What the level "restricted" of the namespace demands.
	s, of := c.SecurityContext, pod.Spec.SecurityContext
	if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || !*of.RunAsNonRoot || of.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%+v %+v", s, of)
	}
	text := m.ConfigMap.Data["config.json"]
	cfg := configured(t, text)
	if cfg.HTTP.Listen.Reveal() != "0.0.0.0:7420" || ports["https"] != 7420 || ports["metrics"] != 7422 || cfg.Metrics.Listen.Reveal() != "0.0.0.0:7422" || cfg.ID == "" || cfg.HTTP.TLS.Cert != "/etc/codemode-bridge-tls/tls.crt" || !paths["/etc/codemode-bridge-tls"] {
		t.Errorf("%+v, with the ports %v", cfg.HTTP, ports)
	}
	for _, name := range names(text) {
		if m.Secret.StringData[name] == "" {
			t.Errorf("the configuration names %s, which the secret has not", name)
		}
	}
	if *pod.Spec.TerminationGracePeriodSeconds < 20 {
		t.Error("a bridge that ends is not given the time that it takes")
	}
}

// A key that Kubernetes does not have is noticed, or the test above would be of no use.
func TestUnknownKeys(t *testing.T) {
	text := string(read(t, "kubernetes/codemode-bridge.yaml"))
	for _, change := range [][2]string{{"readOnlyRootFilesystem:", "readOnlyRootFileSystem:"}, {"containerPort: 7420", "containerPort: yes"}, {"replicas: 2", "replica: 2"}} {
		bad := strings.Replace(text, change[0], change[1], 1)
		if bad == text {
			t.Fatalf("there is no %q", change[0])
		}
		i := strings.Index(bad, "\napiVersion: apps/v1")
		one, _, _ := strings.Cut(bad[i:], "\n---\n")
		if err := decode([]byte(one), new(apps.Deployment)); err == nil {
			t.Errorf("%q is accepted", change[1])
		}
	}
}

// A collector has the keys of OpenTelemetry's collector that the example uses.
type collector struct {
	Receivers struct {
		OTLP struct {
			Protocols map[string]struct {
				Endpoint string `json:"endpoint"`
			} `json:"protocols"`
		} `json:"otlp"`
	} `json:"receivers"`
	Processors struct {
		Batch *struct{} `json:"batch"`
	} `json:"processors"`
	Exporters struct {
		Debug struct {
			Verbosity string `json:"verbosity"`
		} `json:"debug"`
	} `json:"exporters"`
	Service struct {
		Pipelines map[string]struct {
			Receivers  []string `json:"receivers"`
			Processors []string `json:"processors"`
			Exporters  []string `json:"exporters"`
		} `json:"pipelines"`
	} `json:"service"`
}

// The collector takes traces and logs where the documents send them; what is acknowledged of
// the audit log has gone on.
func TestCollector(t *testing.T) {
	c := strictly[collector](t, read(t, "otel-collector.yml"))
	traces := string(read(t, "traces.md"))
	for protocol, p := range c.Receivers.OTLP.Protocols {
		if protocol != "http" && protocol != "grpc" || !strings.Contains(traces, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+p.Endpoint) {
			t.Errorf("%s is at %s, where traces.md sends nothing", protocol, p.Endpoint)
		}
	}
	pipelines := c.Service.Pipelines
	if len(c.Receivers.OTLP.Protocols) != 2 || len(pipelines) != 2 || len(pipelines["logs"].Processors) > 0 || c.Processors.Batch == nil || c.Exporters.Debug.Verbosity != "detailed" {
		t.Errorf("%+v", c)
	}
	for name, p := range pipelines {
		if !slices.Equal(p.Receivers, []string{"otlp"}) || !slices.Equal(p.Exporters, []string{"debug"}) || name != "logs" && !slices.Equal(p.Processors, []string{"batch"}) {
			t.Errorf("the pipeline %s is %+v", name, p)
		}
	}
}

// A composition has the keys of the Compose Specification that the example uses.
type composition struct {
	Name     string                    `json:"name"`
	Services map[string]composed       `json:"services"`
	Volumes  map[string]map[string]any `json:"volumes"`
}

type composed struct {
	Image       string                       `json:"image"`
	Command     []string                     `json:"command"`
	Restart     string                       `json:"restart"`
	DependsOn   map[string]map[string]string `json:"depends_on"`
	Environment map[string]string            `json:"environment"`
	Ports       []string                     `json:"ports"`
	Volumes     []string                     `json:"volumes"`
	ReadOnly    bool                         `json:"read_only"`
	Tmpfs       []string                     `json:"tmpfs"`
	CapDrop     []string                     `json:"cap_drop"`
	SecurityOpt []string                     `json:"security_opt"`
	MemLimit    string                       `json:"mem_limit"`
	PidsLimit   int                          `json:"pids_limit"`
	StopGrace   string                       `json:"stop_grace_period"`
	Healthcheck struct {
		Test     []string `json:"test"`
		Interval string   `json:"interval"`
		Timeout  string   `json:"timeout"`
		Retries  int      `json:"retries"`
	} `json:"healthcheck"`
}

func TestCompose(t *testing.T) {
	c := strictly[composition](t, read(t, "compose/compose.yaml"))
	bridge, database := c.Services["bridge"], c.Services["postgres"]
	if bridge.DependsOn["postgres"]["condition"] != "service_healthy" || len(database.Healthcheck.Test) == 0 {
		t.Error("the bridge may start before its store")
	}
	if !bridge.ReadOnly || !slices.Equal(bridge.CapDrop, []string{"ALL"}) || !slices.Contains(bridge.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("%+v", bridge)
	}
	var used []string
	for _, s := range c.Services {
		for _, v := range s.Volumes {
			if from, _, _ := strings.Cut(v, ":"); !strings.ContainsAny(from, "/.") {
				used = append(used, from)
			}
		}
	}
	if slices.Sort(used); len(used) != len(c.Volumes) || !slices.Equal(used, []string{"database", "state"}) {
		t.Errorf("volumes %v are used, %v are there", used, c.Volumes)
	}
	text := string(read(t, "compose/config.json"))
	cfg := configured(t, text)
	for _, listen := range []string{cfg.HTTP.Listen.Reveal(), cfg.Approvals.Listen.Reveal()} {
		port := strings.TrimPrefix(listen, "0.0.0.0:")
		if !slices.Contains(bridge.Ports, "127.0.0.1:"+port+":"+port) {
			t.Errorf("it listens on %s, and the ports are %v", listen, bridge.Ports)
		}
	}
	for _, name := range names(text) {
		if bridge.Environment[name] == "" {
			t.Errorf("the configuration names %s, which the bridge does not get", name)
		}
	}
	if store := cfg.Audit.Store.Reveal(); !strings.Contains(store, "@postgres/"+database.Environment["POSTGRES_DB"]) || !strings.Contains(store, "//"+database.Environment["POSTGRES_USER"]+":") {
		t.Error("the store is another database than the composition's")
	}
}
