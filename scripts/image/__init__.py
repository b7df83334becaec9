"""An engine's published image with our source patches inside, as a build context. Whole images: image_recipes/."""
