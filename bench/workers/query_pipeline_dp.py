"""Private queries by PipelineDP on its local backend: the worker for bench.query.

Asked together, mean, count and sum share one noisy count and one noisy sum, centred: the best that it offers.
"""

import pipeline_dp
import pyarrow.parquet as pq
import query_jobs
from pipeline_dp import Metrics


def grouped(path, l0, linf, lower, upper, epsilon, delta, noise):
    metrics = [Metrics.COUNT, Metrics.PRIVACY_ID_COUNT, Metrics.SUM, Metrics.MEAN]
    found = _aggregate(path, metrics, l0, linf, lower, upper, epsilon, delta, noise)
    return {key: [each.count, each.privacy_id_count, each.sum, each.mean] for key, each in found}


def medians(path, keys, l0, linf, lower, upper, epsilon, delta, noise):
    metrics = [Metrics.PERCENTILE(50)]
    found = _aggregate(path, metrics, l0, linf, lower, upper, epsilon, delta, noise, keys)
    return {key: each.percentile_50 for key, each in found}


def _aggregate(path, metrics, l0, linf, lower, upper, epsilon, delta, noise, keys=None):
    columns = pq.read_table(path)
    rows = list(zip(*(columns[name].to_pylist() for name in ("user_id", "key", "v1")), strict=True))
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
    params = pipeline_dp.AggregateParams(
        metrics=metrics,
        noise_kind=pipeline_dp.NoiseKind[noise.upper()],
        max_partitions_contributed=l0,
        max_contributions_per_partition=linf,
        min_value=lower,
        max_value=upper,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
    found = engine.aggregate(rows, params, extractors, public_partitions=keys)
    budget.compute_budgets()
    return list(found)


if __name__ == "__main__":
    query_jobs.serve({"grouped": grouped, "medians": medians})
