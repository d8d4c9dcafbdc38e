"""Statistics of profiles: classes of time, timelines, and the limits of the machine."""
