"""Writes the ONNX node tests that the installed onnx package defines.

usage: gen_node_tests.py OUT
OUT/<case>/model.onnx, OUT/<case>/test_data_set_N/{input,output}_M.pb
"""
import os
import sys

import onnx.backend.test.case.node as node
from onnx import TensorProto, numpy_helper


def message(value, info):
    kind = info.type
    if isinstance(value, TensorProto):
        return value
    if kind.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    if kind.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(value, info.name)


def write(path, proto):
    with open(path, "wb") as f:
        f.write(proto.SerializeToString())


def main(out):
    takes_op = node.collect_testcases.__code__.co_argcount
    cases = node.collect_testcases(None) if takes_op else node.collect_testcases()
    n = 0
    for case in cases:
        folder = os.path.join(out, case.name)
        os.makedirs(folder, exist_ok=True)
        write(folder + "/model.onnx", case.model)
        graph = case.model.graph
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = f"{folder}/test_data_set_{i}"
            os.makedirs(data, exist_ok=True)
            for j, v in enumerate(inputs):
                write(f"{data}/input_{j}.pb", message(v, graph.input[j]))
            for j, v in enumerate(outputs):
                write(f"{data}/output_{j}.pb", message(v, graph.output[j]))
        n += 1
    print(n, "cases")


if __name__ == "__main__":
    main(sys.argv[1])
