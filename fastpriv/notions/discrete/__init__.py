"""The notions of a secret behind a channel with finitely many inputs and outputs.

``quantities`` computes each of them by the cheapest method: ``type_class_quantities`` for channels known by structure,
``set_channels`` for those that release sets, ``dense_quantities`` for rows. ``delta_curves`` holds LDP and LIP at
levels of epsilon, ``abp`` the expected posteriors, ``product_channels`` both for products.
"""
