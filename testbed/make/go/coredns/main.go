// Command coredns is CoreDNS with only the plugins that kubeadm's Corefile names,
// so that it builds in a fraction of the time: upstream's main pulls in every cloud's SDK.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/caddy/onevent"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func init() {
	// the order is the order in which a query passes the plugins
	dnsserver.Directives = []string{
		"reload", "ready", "health", "prometheus", "errors", "log", "cache",
		"loadbalance", "loop", "hosts", "kubernetes", "forward",
	}
}

func main() { coremain.Run() }
