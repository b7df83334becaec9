// Command gpu-stand-in is a kubelet device plugin that offers one nvidia.com/gpu, as NVIDIA's does on a GB10.
// There is no GPU behind it: a pod that asks for one gets the environment variable that NVIDIA's runtime would look at.
// With a CONFIG_FILE that says so it offers the GPU several times, under the names that NVIDIA's gives its time slices.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/yaml"
)

const (
	gpu      = "nvidia.com/gpu"
	device   = "GPU-0"
	endpoint = "sparkloom-gpu.sock"
	// Until NVIDIA's has loaded the driver's library and asked it for devices. Assumed, not measured.
	start = time.Second
)

// config is what is read of the file that NVIDIA's plugin takes, version v1.
type config struct {
	Version string `json:"version"`
	Sharing struct {
		TimeSlicing struct {
			RenameByDefault            bool `json:"renameByDefault"`
			FailRequestsGreaterThanOne bool `json:"failRequestsGreaterThanOne"`
			Resources                  []struct {
				Name     string `json:"name"`
				Replicas int    `json:"replicas"`
			} `json:"resources"`
		} `json:"timeSlicing"`
	} `json:"sharing"`
}

// offer is what the kubelet is told: a name, and the devices behind it.
type offer struct {
	resource string
	devices  []string
	onlyOne  bool
}

// offered reads the file anew at each start, as NVIDIA's does; what that refuses is refused.
func offered() (offer, error) {
	whole := offer{resource: gpu, devices: []string{device}}
	path := os.Getenv("CONFIG_FILE")
	if path == "" {
		return whole, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return offer{}, err
	}
	var told config
	if err := yaml.Unmarshal(text, &told); err != nil {
		return offer{}, err
	}
	if told.Version != "" && told.Version != "v1" {
		return offer{}, fmt.Errorf("unknown version: %s", told.Version)
	}
	sharing := told.Sharing.TimeSlicing
	for _, each := range sharing.Resources {
		if each.Replicas < 2 {
			return offer{}, errors.New("number of replicas must be >= 2")
		}
		if each.Name != gpu {
			continue
		}
		shared := offer{resource: gpu, onlyOne: sharing.FailRequestsGreaterThanOne}
		if sharing.RenameByDefault {
			shared.resource += ".shared"
		}
		for number := range each.Replicas {
			shared.devices = append(shared.devices, fmt.Sprintf("%s::%d", device, number))
		}
		return shared, nil
	}
	return whole, nil
}

type plugin struct {
	api.UnimplementedDevicePluginServer
	offer
	stop chan struct{}
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	devices := []*api.Device{}
	for _, id := range p.devices {
		devices = append(devices, &api.Device{ID: id, Health: api.Healthy})
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-p.stop
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, asked := range request.ContainerRequests {
		for _, id := range asked.DevicesIds {
			if !slices.Contains(p.devices, id) {
				return nil, fmt.Errorf("unknown device: %s", id)
			}
		}
		if p.onlyOne && len(asked.DevicesIds) > 1 {
			return nil, fmt.Errorf("maximum request size for shared resources is 1; found %d", len(asked.DevicesIds))
		}
		visible, _, _ := strings.Cut(asked.DevicesIds[0], "::")
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": visible},
		})
	}
	return answer, nil
}

// serve offers the device until the kubelet starts anew: it then removes our socket and wants a new registration.
func serve(what offer) error {
	path := filepath.Join(api.DevicePluginPath, endpoint)
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	p := &plugin{offer: what, stop: make(chan struct{})}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	defer server.Stop()
	defer close(p.stop)
	if err := register(what.resource); err != nil {
		return err
	}
	log.Printf("registered %d of %s", len(what.devices), what.resource)
	for {
		if _, err := os.Stat(path); err != nil {
			return nil
		}
		time.Sleep(time.Second)
	}
}

func register(resource string) error {
	connection, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: resource,
	})
	return err
}

func main() {
	time.Sleep(start)
	what, err := offered()
	if err != nil {
		log.Fatalf("unable to load config: %v", err)
	}
	for {
		if err := serve(what); err != nil {
			log.Printf("waiting for the kubelet: %v", err)
		}
		time.Sleep(time.Second)
	}
}
