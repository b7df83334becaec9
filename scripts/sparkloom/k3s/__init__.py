"""K3s on the site's machines: what each should have (`plan`), and what to do about what it has (`judge`)."""
