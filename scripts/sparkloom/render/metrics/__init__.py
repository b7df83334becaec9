"""What a site shows a Prometheus: exporters, who may ask them, alerts, dashboards, a small Prometheus."""
