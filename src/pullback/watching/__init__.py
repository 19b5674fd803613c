"""What flows backward while a program trains: `pb.watch`, and the logs that it fills."""
