// Package ext is what Traefik's module leaves out of its archive: a place where another product adds fields. Empty here.
package ext

// HTTP adds nothing to an HTTP configuration.
type HTTP struct{}

// Router adds nothing to a router.
type Router struct{}
