from solocron import every

nobody_finds_it = every("1d", name="nameless", run_in="process")(lambda: None)
