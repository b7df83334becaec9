// Command gpu-stand-in is a kubelet device plugin that offers one nvidia.com/gpu, as NVIDIA's does on a GB10.
// There is no GPU behind it: a pod that asks for one gets the environment variable that NVIDIA's runtime would look at.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource = "nvidia.com/gpu"
	device   = "GPU-0"
	endpoint = "sparkloom-gpu.sock"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	stop chan struct{}
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	devices := []*api.Device{{ID: device, Health: api.Healthy}}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-p.stop
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for range request.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": device},
		})
	}
	return answer, nil
}

// serve offers the device until the kubelet starts anew: it then removes our socket and wants a new registration.
func serve() error {
	path := filepath.Join(api.DevicePluginPath, endpoint)
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	p := &plugin{stop: make(chan struct{})}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	defer server.Stop()
	defer close(p.stop)
	if err := register(); err != nil {
		return err
	}
	log.Printf("registered one %s", resource)
	for {
		if _, err := os.Stat(path); err != nil {
			return nil
		}
		time.Sleep(time.Second)
	}
}

func register() error {
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
	for {
		if err := serve(); err != nil {
			log.Printf("waiting for the kubelet: %v", err)
		}
		time.Sleep(time.Second)
	}
}
