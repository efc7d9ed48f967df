"""Claim: the rivals' models decide as Eddy's do (rounds, tokens, folds), their straight reference
does not depend on who else is in the batch, and rounds, values and shapes that are others are told.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join("tools", "gpu"))
try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy here")
    sys.exit(0)
import rival_models
import rival_ops


def all_rows(model):
    """Every row of the batch, as a rival gives them, and the rounds."""
    ops = rival_ops.NumpyOps()
    if not model.has_loop:
        return 0, model.forward(ops, model.w, lambda key, function: function)
    state = model.start(ops, model.w)
    while (branch := int(model.decide(ops, model.w, state))) >= 0:
        state = model.branches[branch](ops, model.w, state)
    return int(state[0]), model.results(state)


class RivalModels(unittest.TestCase):
    def test_rounds_and_values_are_those_of_the_reference(self):
        for make in rival_models.SMALL_MODELS:
            model = make()
            with self.subTest(model.name):
                self.assertEqual(rival_ops.difference(model, all_rows(model)), "")

    def test_one_round_more_is_told(self):
        for make in rival_models.SMALL_MODELS:
            model = make()
            trips, results = all_rows(model)
            with self.subTest(model.name):
                self.assertIn("trips", rival_ops.difference(model, (trips + 1, results)))

    def test_other_values_are_told(self):
        for make in rival_models.SMALL_MODELS:
            model = make()
            trips, results = all_rows(model)
            for k, result in enumerate(results):
                wrong = list(results)
                wrong[k] = result + np.float32(0.1) * np.abs(result).max()
                with self.subTest(model.name):
                    self.assertIn(f"result {k}", rival_ops.difference(model, (trips, wrong)))
            with self.subTest(model.name):
                nan = [result * np.float32("nan") for result in results]
                self.assertIn("off by", rival_ops.difference(model, (trips, nan)))

    def test_seq2seq_stops_where_it_is_told_to(self):
        written = all_rows(rival_models.Seq2seq(2, 3, 8, 30, 3, 12))[1][0]
        self.assertTrue((written[:2] != 0).all())
        self.assertTrue((written[2:] == 0).all())

    def test_gates_that_the_weights_decide_are_settled(self):
        model = rival_models.SkipNet((2, 3), 2, 16, 10, (2, 3))
        model.settle()
        scores = model.reference()[0]
        self.assertIn((scores > 0).sum(), (2, 3))
        self.assertGreater(np.abs(scores).min(), model.least_score)
        model.taken = (6, 6)
        with self.assertRaisesRegex(RuntimeError, "no seed"):
            model.settle()

    def test_a_tree_folds_once_less_than_it_has_leaves(self):
        program = rival_models.Tree(1, 9, 8).w["program"]
        self.assertEqual((program < 0).sum(), 8)
        self.assertEqual(len(program), 17)

    def test_full_sizes_have_a_model_for_each_line_of_the_table(self):
        names = [make().name for make in rival_models.MODELS]
        self.assertEqual(len(set(names)), 15)
        self.assertIn("seq2seq, batch 64, stops at 40", names)


if __name__ == "__main__":
    unittest.main()
