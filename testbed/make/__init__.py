"""What is built once and kept: programs, images, disks."""
