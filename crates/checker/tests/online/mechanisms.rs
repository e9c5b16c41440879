//! Each mechanism on the smallest trace that it forbids, beside the nearest that it allows.
