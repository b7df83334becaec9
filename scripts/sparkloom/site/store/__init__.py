"""The controller's side of the model store on the nodes."""
