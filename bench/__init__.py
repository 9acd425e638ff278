"""The benchmark: named scenarios, Solocron and its peers side by side in one run, every slot checked.

python -m bench                     every scenario, as in the documentation
python -m bench burst idle --quick  two of them, small
"""
