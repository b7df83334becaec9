// Program kubernetes is the six of Kubernetes' commands that run on nodes, in one file: it runs as what it is called.
//
// Each of them alone is linked for itself, one after the other, and has most of the others' code in it.
// kubectl stays apart: tests call it often, and it starts in half the time without the servers' code.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // of CronJobs

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// Each is made only when it is the one to run: making one registers its flags and features for the whole process.
var servers = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": manager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	name := filepath.Base(os.Args[0])
	if server, known := servers[name]; known {
		os.Exit(cli.Run(server()))
	}
	if name != "kubeadm" {
		fmt.Fprintf(os.Stderr, "found the name %q, expected one of kubeadm's or Kubernetes' servers (a link to me)\n", name)
		os.Exit(2)
	}
	kubeadmerrors.HandleError(kubeadm.Run())
}
