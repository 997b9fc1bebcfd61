mod structure;
