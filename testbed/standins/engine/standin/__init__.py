"""What runs inside the stand-in image. Standard library only; never imports the product."""
