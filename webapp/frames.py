"""Frames: the store's public views as data frames, one function for each thing that a page or a plot shows."""

import pandas as pd
from sqlalchemy import Engine
